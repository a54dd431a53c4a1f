// Command golang serves locks of Go libraries to oversell, by the protocol of docs/systems.md: golang redislock,
// golang redsync, golang rueidislock.
package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/adapters/golocks"
	"oversell/clock"
	"oversell/lockimpl"
	"oversell/variant"
)

// libraries are the locks by the name in the program's argument.
var libraries = map[string]lockimpl.Variant{"redislock": golocks.Redislock, "redsync": golocks.Redsync, "rueidislock": golocks.Rueidislock}

type request struct {
	ID      int64  `json:"id"`
	Client  int    `json:"client"`
	Op      string `json:"op"`
	Key     string `json:"key"`
	TTLMS   int64  `json:"ttl_ms"`
	WaitMS  int64  `json:"wait_ms"`
	RetryMS int64  `json:"retry_ms"`
	Lock    string `json:"lock"`
}

type answer struct {
	ID      int64   `json:"id"`
	OK      bool    `json:"ok,omitempty"`
	Refused string  `json:"refused,omitempty"`
	Unknown string  `json:"unknown,omitempty"`
	Lock    string  `json:"lock,omitempty"`
	UntilMS float64 `json:"until_ms,omitempty"`
}

func main() {
	library, known := libraries[strings.Join(os.Args[1:], " ")]
	if !known {
		fmt.Fprintln(os.Stderr, "golang: name a library: redislock, redsync or rueidislock")
		os.Exit(2)
	}
	s := service{library: library, lockers: map[int]lockimpl.Locker{}}
	s.masters, s.addresses = masters(os.Getenv("REDIS_URL"))
	crash, _ := strconv.ParseInt(os.Getenv("CRASH"), 10, 64)
	s.crash = crash
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go s.serve(r)
	}
}

// masters returns clients of the servers at comma-separated addresses. A client waits two seconds for an answer,
// and does not retry commands. at are the addresses, for libraries with clients of their own.
func masters(addresses string) (all []redis.UniversalClient, at []string) {
	for _, address := range strings.Split(addresses, ",") {
		o, err := redis.ParseURL(address)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		o.ReadTimeout, o.MaxRetries, o.PoolSize = 2*time.Second, -1, 128
		all, at = append(all, redis.NewClient(o)), append(at, o.Addr)
	}
	return all, at
}

type service struct {
	library   lockimpl.Variant
	masters   []redis.UniversalClient
	addresses []string
	crash     int64
	granted   atomic.Int64

	mutex   sync.Mutex // of the fields below, and of stdout
	lockers map[int]lockimpl.Locker
}

// locker returns the lock client of a client.
func (s *service) locker(client int) lockimpl.Locker {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.lockers[client] == nil {
		s.lockers[client] = s.library.New(variant.Env{Redis: s.masters, Addr: s.addresses, Clock: clock.Real{}, Token: rand.Text})
	}
	return s.lockers[client]
}

func (s *service) serve(r request) {
	a := s.answer(r)
	a.ID = r.ID
	line, err := json.Marshal(a)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fmt.Println(string(line))
}

func (s *service) answer(r request) answer {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	l := s.locker(r.Client)
	held := lockimpl.Lock{Key: r.Key, Token: r.Lock}
	ttl := time.Duration(r.TTLMS) * time.Millisecond
	var err error
	switch r.Op {
	case "init":
		return answer{OK: true}
	case "acquire":
		held, err = s.acquire(ctx, l, r)
	case "extend":
		held, err = l.Extend(ctx, held, ttl)
	case "release":
		err = l.Release(ctx, held)
	default:
		err = errors.New(r.Op + " is not implemented")
	}
	switch {
	case errors.Is(err, lockimpl.ErrHeld):
		return answer{Refused: "held"}
	case errors.Is(err, lockimpl.ErrLost):
		return answer{Refused: "lost"}
	case err != nil:
		return answer{Unknown: cmp.Or(err.Error(), "an error without a text")}
	}
	a := answer{OK: true, Lock: held.Token}
	if !held.Until.IsZero() {
		a.UntilMS = float64(held.Until.UnixMicro()) / 1000
	}
	return a
}

// acquire tries until the lock is granted or the wait is over.
func (s *service) acquire(ctx context.Context, l lockimpl.Locker, r request) (lockimpl.Lock, error) {
	giveUp := time.Now().Add(time.Duration(r.WaitMS) * time.Millisecond)
	for {
		held, err := l.Acquire(ctx, r.Key, lockimpl.Options{TTL: time.Duration(r.TTLMS) * time.Millisecond})
		if err == nil && s.crash > 0 && s.granted.Add(1) == s.crash {
			os.Exit(1) // like a holder that dies
		}
		if !errors.Is(err, lockimpl.ErrHeld) || time.Now().After(giveUp) {
			return held, err
		}
		time.Sleep(time.Duration(max(r.RetryMS, 1)) * time.Millisecond)
	}
}
