"""What a worker of the test of peers does with a task: it notes in $LOG that it began and ended, and every tenth dies once in between."""
import json, os, signal, time


def note(event, task):
    line = json.dumps({"t": time.time_ns(), "worker": os.getpid(), "event": event, "task": task}) + "\n"
    log = os.open(os.environ["LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, line.encode())
    os.close(log)


def handle(task, also=None):
    note("start", task)
    time.sleep(0.01)
    if os.environ.get("DIE") and int(task) % 10 == 3:
        try:
            os.close(os.open(os.environ["LOG"] + ".died" + task, os.O_CREAT | os.O_EXCL))
            time.sleep(0.5)  # in the midst of the task, and not while it is handed over
            if also:
                os.kill(also, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        except FileExistsError:
            pass
    note("done", task)
