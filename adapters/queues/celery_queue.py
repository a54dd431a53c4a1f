"""Celery on Redis for the test of peers: produce N, work, or left. See peers_test.go."""
import base64, json, os, sys

import redis
from celery import Celery

from record import handle

app = Celery("celery_queue", broker=os.environ["REDIS_URL"])
app.conf.update(task_default_queue="peers", worker_prefetch_multiplier=1, task_acks_late=bool(os.environ.get("LATE")),
                task_reject_on_worker_lost=bool(os.environ.get("LATE")), broker_transport_options={"visibility_timeout": 3})


@app.task
def work(task):
    handle(task, also=os.getppid())  # the task runs in a child of the worker


if __name__ == "__main__":
    sys.modules["celery_queue"] = sys.modules["__main__"]
    if sys.argv[1] == "produce":
        for task in range(int(sys.argv[2])):
            app.send_task("celery_queue.work", [str(task)])
    elif sys.argv[1] == "work":
        os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))  # for "-A celery_queue"
        os.execvp(sys.executable, [sys.executable, "-m", "celery", "-A", "celery_queue", "worker", "--concurrency", "1", "--loglevel", "ERROR", "--without-gossip", "--without-mingle"])
    else:
        server = redis.Redis.from_url(os.environ["REDIS_URL"])
        waiting = [json.loads(m) for m in server.lrange("peers", 0, -1)]
        waiting += [json.loads(m)[0] for m in server.hvals("unacked")]
        for message in waiting:
            print(json.loads(base64.b64decode(message["body"]))[0][0])
