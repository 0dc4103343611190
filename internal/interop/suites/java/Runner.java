import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs a JUnit class and prints a line "RESULT passed|failed|skipped CLASS.TEST" for each test. */
public class Runner extends RunListener {
    private boolean ended;

    public static void main(String[] classes) throws Exception {
        JUnitCore core = new JUnitCore();
        core.addListener(new Runner());
        for (String name : classes) {
            core.run(Class.forName(name));
        }
        System.exit(0); // tests may have left threads behind
    }

    @Override
    public void testStarted(Description test) {
        ended = false;
    }

    @Override
    public void testFailure(Failure failure) {
        ended = true;
        print("failed", failure.getDescription());
        failure.getException().printStackTrace(System.out);
    }

    @Override
    public void testAssumptionFailure(Failure failure) {
        ended = true;
        print("skipped", failure.getDescription());
    }

    @Override
    public void testIgnored(Description test) {
        print("skipped", test);
    }

    @Override
    public void testFinished(Description test) {
        if (!ended) {
            print("passed", test);
        }
    }

    private static void print(String outcome, Description test) {
        String type = test.getClassName();
        System.out.println("\nRESULT " + outcome + " " + type.substring(type.lastIndexOf('.') + 1) + "." + test.getMethodName());
    }
}
