package dormouse

// workerEnv makes the test binary a worker process that a test can kill.
const workerEnv = "DORMOUSE_TEST_WORKER"

func runWorker(string) {}
