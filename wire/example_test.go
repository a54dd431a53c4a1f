package wire_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"oversell/wire"
)

// The server executes the seventh decrement, and its reply is lost: does the client send it again?
func ExampleListen() {
	ctx := context.Background()
	var seen atomic.Int64
	proxy, err := wire.Listen(ctx, wire.Options{
		To: "127.0.0.1:6379",
		Decide: func(c wire.Command) wire.Action {
			if c.Name == "DECR" && c.Key == "stock" && seen.Add(1) == 7 {
				return wire.Action{Verb: wire.DropReply}
			}
			return wire.Action{}
		},
		Fired: func(c wire.Command, a wire.Action) {
			fmt.Println(a.Verb, "hit", c.Name, "of connection", c.Conn)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer proxy.Close()
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	defer client.Close()
	for range 10 {
		client.Decr(ctx, "stock")
	}
}
