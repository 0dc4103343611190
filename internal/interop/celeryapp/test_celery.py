"""A Celery application on the broker: what its tasks need of AMQP, from their results on."""

import datetime
import os
import select
import subprocess
import sys
import tempfile
import time
import unittest

from tasks import Unavailable, add, app, broken, flaky, held, hopeless, now

WAIT = 30


class Worker:
    """A worker of the application; wait_until_ready before it is needed."""

    def __init__(self, name, queue, pool, concurrency):
        self.name = f"{name}@test"
        self.ready, ready = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-B", "-W", "ignore", "-m", "celery", "--quiet", "--app=tasks", "worker", f"--hostname={self.name}",
             f"--queues={queue}", f"--pool={pool}", f"--concurrency={concurrency}", "--loglevel=critical",
             "--without-gossip", "--without-mingle", "--without-heartbeat"],
            env=dict(os.environ, READY=str(ready)), pass_fds=[ready],
        )
        os.close(ready)

    def wait_until_ready(self):
        readable, _, _ = select.select([self.ready], [], [], WAIT)
        if not readable or not os.read(self.ready, 16):
            raise RuntimeError(f"the worker {self.name} has not started in {WAIT} s, or has ended")

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT)

    def close(self):
        """Ends the worker in order, at once if it takes long."""
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
        os.close(self.ready)


def setUpModule():
    global tasks, doomed
    tasks = Worker("tasks", "celery.tasks", "threads", 4)
    unittest.addModuleCleanup(tasks.close)
    doomed = Worker("doomed", "celery.held", "solo", 1)
    unittest.addModuleCleanup(doomed.close)
    unittest.addModuleCleanup(app.close)
    tasks.wait_until_ready()
    doomed.wait_until_ready()


class Tasks(unittest.TestCase):
    def test_results_come_by_rpc(self):
        self.assertEqual(add.delay(2, 3).get(timeout=WAIT), 5)
        with self.assertRaises(KeyError):
            broken.delay().get(timeout=WAIT)

    def test_more_tasks_than_the_prefetch_limit(self):
        results = [add.delay(i, i) for i in range(50)]
        self.assertEqual([result.get(timeout=WAIT) for result in results], [2 * i for i in range(50)])

    def test_countdown_and_eta(self):
        due = time.time() + 1.5
        counted = now.apply_async(countdown=1.5)
        at = now.apply_async(eta=datetime.datetime.fromtimestamp(due, datetime.timezone.utc))
        self.assertEqual(add.delay(1, 1).get(timeout=WAIT), 2)  # those that wait hold up no others
        for result in [counted, at]:
            self.assertGreaterEqual(result.get(timeout=WAIT), due - 0.1)

    def test_retries_with_backoff(self):
        start = time.monotonic()
        self.assertEqual(flaky.delay(2).get(timeout=WAIT), 2)
        self.assertGreaterEqual(time.monotonic() - start, 3)

    def test_retries_end(self):
        with self.assertRaises(Unavailable):
            hopeless.delay().get(timeout=WAIT)

    def test_task_of_a_killed_worker_runs_again(self):
        with tempfile.TemporaryDirectory() as folder:
            fifo = os.path.join(folder, "started")
            os.mkfifo(fifo)
            first = held.delay(fifo)
            with open(fifo) as started:
                self.assertEqual(started.read(), "started")
            others = [held.delay() for _ in range(3)]  # the prefetch limit keeps them from the worker
            doomed.kill()
            app.control.add_consumer("celery.held", destination=[tasks.name], reply=True, timeout=WAIT, limit=1)
            self.assertTrue(first.get(timeout=WAIT))
            self.assertEqual([other.get(timeout=WAIT) for other in others], [False] * 3)


if __name__ == "__main__":
    unittest.main()
