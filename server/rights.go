package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/server/instance"
)

// administration lists the commands needed to break and heal a server, one example of each kind. Executing them would
// do no harm.
var administration = [][]any{
	{"config", "get", "maxmemory"},
	{"config", "set", "maxmemory-samples", "5"},
	{"client", "pause", "0"},
	{"monitor"},
	{"replicaof", "no", "one"},
	{"client", "kill", "type", "pubsub"},
	{"script", "flush"},
	{"acl", "setuser", "oversell-nobody"},
}

// canAdminister asks every server with data whether the account may use administrative commands. Since Redis 7.0 the
// server answers that without executing any. On older servers it tries the commands that change nothing.
func (t *Target) canAdminister(ctx context.Context) error {
	switch t.Kind {
	case Embedded:
		return errclass.Usagef("the in-memory emulation does not know administrative commands: that needs a real server, --target process or container")
	case Process, Container:
		return nil
	}
	for _, s := range t.group.Servers {
		if s.Role == Sentinel {
			continue
		}
		denied := ""
		err := s.Visit(ctx, func(ctx context.Context, c *redis.Client) (err error) {
			denied, err = deniedCommand(ctx, c)
			return err
		})
		if err != nil {
			return errclass.Environmentf("find out what is allowed at %s: %w", s.Addr, s.Silent(err))
		}
		if denied != "" {
			return errclass.Usagef("the account in the address may not administer %s (%s): give one that may, or use --target process or container", s.Addr, denied)
		}
	}
	return nil
}

// deniedCommand returns the command that is denied or unknown, and "" if none is.
func deniedCommand(ctx context.Context, c *redis.Client) (string, error) {
	me, err := c.Do(ctx, "acl", "whoami").Text()
	switch {
	case unknown(err): // before 6.0
		return deniedByTrial(ctx, c)
	case err != nil:
		return refusal("acl whoami", err)
	}
	for _, command := range administration {
		verdict, err := c.Do(ctx, append([]any{"acl", "dryrun", me}, command...)...).Text()
		switch {
		case err == nil && verdict == "OK":
		case err == nil:
			return verdict, nil
		case unknown(err): // before 7.0
			return deniedByTrial(ctx, c)
		default:
			return refusal(words(command), err)
		}
	}
	return "", nil
}

// deniedByTrial is for servers before 7.0, which have no ACL DRYRUN.
func deniedByTrial(ctx context.Context, c *redis.Client) (string, error) {
	for _, command := range [][]any{{"config", "get", "maxmemory"}, {"client", "pause", "0"}, {"script", "exists", "0"}} {
		if err := c.Do(ctx, command...).Err(); err != nil {
			return refusal(words(command), err)
		}
	}
	return "", nil
}

// unknown reports whether a server does not know the command that it got.
func unknown(err error) bool {
	if err == nil || !instance.IsReply(err) {
		return false
	}
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "unknown command") || strings.Contains(text, "unknown subcommand")
}

// refusal describes an error that is a refusal by the server. It returns a failure to reach the server as an error.
func refusal(command string, err error) (string, error) {
	if !instance.IsReply(err) {
		return "", err
	}
	return fmt.Sprintf("%s: %v", command, err), nil
}

func words(command []any) string {
	return strings.TrimSuffix(fmt.Sprintln(command...), "\n")
}
