// Command asynq adapts github.com/hibiken/asynq for the test of published libraries: asynq produce N, asynq work,
// asynq left. The test documents the environment variables.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
)

func main() {
	log.SetFlags(0)
	at, err := asynq.ParseRedisURI(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	switch {
	case len(os.Args) == 3 && os.Args[1] == "produce":
		err = produce(at, os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "work":
		err = work(at)
	case len(os.Args) == 2 && os.Args[1] == "left":
		err = left(at)
	default:
		log.Fatal("asynq: produce N, work or left")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func produce(at asynq.RedisConnOpt, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	client := asynq.NewClient(at)
	defer client.Close()
	for task := range n {
		if _, err := client.Enqueue(asynq.NewTask("work", []byte(strconv.Itoa(task)))); err != nil {
			return err
		}
	}
	return nil
}

// work runs a worker whose handlers die once for every tenth task, if $DIE is set.
func work(at asynq.RedisConnOpt) error {
	quiet := asynq.Config{Concurrency: 1, LogLevel: asynq.FatalLevel}
	return asynq.NewServer(at, quiet).Run(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		task := string(t.Payload())
		if err := note("start", task); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
		if n, _ := strconv.Atoi(task); os.Getenv("DIE") != "" && n%10 == 3 {
			if f, err := os.OpenFile(os.Getenv("LOG")+".died"+task, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				f.Close()
				time.Sleep(500 * time.Millisecond) // during the task, as in record.py
				return syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
		return note("done", task)
	}))
}

func note(event, task string) error {
	line, err := json.Marshal(map[string]any{"t": time.Now().UnixNano(), "worker": os.Getpid(), "event": event, "task": task})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(os.Getenv("LOG"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.WriteString(f, string(line)+"\n")
	return err
}

// left prints the tasks that the library still holds.
func left(at asynq.RedisConnOpt) error {
	i := asynq.NewInspector(at)
	defer i.Close()
	for _, list := range []func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){i.ListPendingTasks, i.ListActiveTasks, i.ListRetryTasks, i.ListArchivedTasks} {
		tasks, err := list("default", asynq.PageSize(10_000))
		if err != nil {
			return err
		}
		for _, t := range tasks {
			fmt.Println(string(t.Payload))
		}
	}
	return nil
}
