"""A Celery application as its manual shows one: results by rpc://, tasks that retry, and one that acknowledges late."""

import os
import time

from celery import Celery
from celery.signals import worker_ready

app = Celery("tasks", broker=os.environ["AMQP_URL"], backend="rpc://")
app.conf.update(
    broker_transport_options={"confirm_publish": True},
    task_default_queue="celery.tasks",
    task_routes={"tasks.held": {"queue": "celery.held"}},
    worker_prefetch_multiplier=1,
)


@worker_ready.connect
def tell(**_):
    """Tells the program that has started the worker."""
    os.write(int(os.environ["READY"]), b"ready")


@app.task
def add(x, y):
    return x + y


@app.task
def now():
    return time.time()


@app.task
def broken():
    raise KeyError("broken")


class Unavailable(Exception):
    pass


@app.task(bind=True, autoretry_for=(Unavailable,), retry_backoff=1, retry_jitter=False, max_retries=5)
def flaky(self, failures):
    """Fails so many times; the waits between are 1 s, 2 s, …"""
    if self.request.retries < failures:
        raise Unavailable()
    return self.request.retries


@app.task(bind=True, max_retries=1)
def hopeless(self):
    raise self.retry(exc=Unavailable("at last"), countdown=0.1)


@app.task(bind=True, acks_late=True)
def held(self, fifo=None):
    """With a FIFO, it says there that it runs, and holds up its worker unless it was delivered before."""
    redelivered = self.request.delivery_info["redelivered"]
    if fifo and not redelivered:
        with open(fifo, "w") as started:
            started.write("started")
        time.sleep(3600)
    return redelivered
