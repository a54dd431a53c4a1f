"""RQ for the test of peers: produce N, work, or left. See peers_test.go."""
import os, sys

from redis import Redis
from rq import Queue, Worker
from rq.job import Job

from record import handle

connection = Redis.from_url(os.environ["REDIS_URL"])
queue = Queue("peers", connection=connection)


def work(task):
    handle(task, also=os.getppid())  # the job runs in a child of the worker


if __name__ == "__main__":
    if sys.argv[1] == "produce":
        for task in range(int(sys.argv[2])):
            queue.enqueue("rq_queue.work", str(task))
    elif sys.argv[1] == "work":
        Worker([queue], connection=connection).work(logging_level="ERROR")
    else:  # what the library knows of: waiting, started, or failed
        for registry in [queue.started_job_registry, queue.failed_job_registry]:
            for job in registry.get_job_ids():
                print(Job.fetch(job, connection=connection).args[0])
        for job in queue.get_jobs():
            print(job.args[0])
