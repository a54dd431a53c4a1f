package server

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/server/instance"
)

// Usage is how much a server has done since it was started.
type Usage struct {
	// CPU is the processor time of all threads of its process.
	CPU time.Duration
	// Commands is how many it has executed, including those within scripts and of other clients.
	Commands int64
	// Life is a text that a server chooses anew at each start; empty if it says none.
	Life string
}

// Usage asks a server how much it has done, over its administrative connection. A server that does not say so, such as
// the emulation or one whose account may not call INFO, is an error of class [ErrUsage]: asking again is useless. It
// panics if there is no such server.
func (t *Target) Usage(ctx context.Context, number int) (Usage, error) {
	s := t.group.Servers[number-1]
	if t.Kind == Embedded {
		return Usage{}, errclass.Usagef("the in-memory emulation does not say how much it does")
	}
	var cpu, stats, about *redis.StringCmd
	_, err := s.Admin.Pipelined(ctx, func(p redis.Pipeliner) error {
		cpu, stats, about = p.Info(ctx, "cpu"), p.Info(ctx, "stats"), p.Info(ctx, "server")
		return nil
	})
	if err != nil {
		if _, answered := err.(redis.Error); answered {
			return Usage{}, errclass.Usagef("ask the server on %s for INFO: %w", s.Addr, err)
		}
		return Usage{}, errclass.Environmentf("ask the server on %s for INFO: %w", s.Addr, err)
	}
	u, ok := usageIn(instance.ParseInfo(cpu.Val()), instance.ParseInfo(stats.Val()))
	if !ok {
		return Usage{}, errclass.Usagef("the server on %s does not say in INFO how much it does", s.Addr)
	}
	u.Life = instance.ParseInfo(about.Val())["run_id"]
	return u, nil
}

// usageIn reads the reply to INFO.
func usageIn(cpu, stats instance.Info) (u Usage, ok bool) {
	system, err1 := strconv.ParseFloat(cpu["used_cpu_sys"], 64)
	user, err2 := strconv.ParseFloat(cpu["used_cpu_user"], 64)
	commands, err3 := strconv.ParseInt(stats["total_commands_processed"], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return Usage{}, false
	}
	return Usage{CPU: time.Duration((system + user) * float64(time.Second)), Commands: commands}, true
}
