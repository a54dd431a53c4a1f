package idimpl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/internal/stepped"
	"oversell/lockimpl"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

func openServer(t *testing.T, kind string) *server.Target {
	t.Helper()
	return opentest.Open(t, server.Spec{Target: kind})
}

func client(t *testing.T, s *server.Target) *redis.Client {
	t.Helper()
	c := s.Client(0, server.ConnOptions{}).(*redis.Client)
	t.Cleanup(func() { c.Close() })
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

func generator(t *testing.T, v Variant, c *redis.Client, counter string) Generator {
	t.Helper()
	return v.New(variant.Env{Redis: []redis.UniversalClient{c}}, counter)
}

// TestOneClientCounts checks that, with a single client, every generator gives 1, 2, 3 …
func TestOneClientCounts(t *testing.T) {
	for _, kind := range []string{"process", "embedded"} {
		s := openServer(t, kind)
		for _, v := range Variants {
			g := generator(t, v, client(t, s), "{"+v.Name+"}thread")
			for want := int64(1); want <= 2*blockSize+1; want++ {
				got, err := g.Next(t.Context(), strconv.FormatInt(want, 10), lockimpl.Lock{})
				if err != nil || got != want {
					t.Fatalf("%s on %s: %d, %v; want %d", v.Name, kind, got, err, want)
				}
			}
			if last, err := g.Last(t.Context()); err != nil || last < 2*blockSize+1 {
				t.Errorf("%s on %s: the server knows %d numbers, %v", v.Name, kind, last, err)
			}
		}
	}
}

// TestManyClientsCount checks that generators keep their promises without a lock, and that get-set, which relies on a
// lock, keeps them with one.
func TestManyClientsCount(t *testing.T) {
	s := openServer(t, "process")
	const clients, each = 8, 100
	for _, v := range Variants {
		var mu sync.Mutex // stands for a lock that works
		var all []int64
		var crowd sync.WaitGroup
		for i := range clients {
			g := generator(t, v, client(t, s), "{many-"+v.Name+"}thread")
			crowd.Go(func() {
				for j := range each {
					if v.Name == "get-set" {
						mu.Lock()
					}
					n, err := g.Next(t.Context(), fmt.Sprint(i, "-", j), lockimpl.Lock{})
					if v.Name != "get-set" {
						mu.Lock()
					}
					all = append(all, n)
					mu.Unlock()
					if err != nil {
						t.Errorf("%s: %v", v.Name, err)
					}
				}
			})
		}
		crowd.Wait()
		slices.Sort(all)
		if distinct := len(slices.Compact(slices.Clone(all))); distinct != clients*each {
			t.Errorf("%s gave %d different numbers to %d requests", v.Name, distinct, clients*each)
		}
		if slices.Contains(v.Promises, variant.NoGaps) && all[len(all)-1] != clients*each {
			t.Errorf("%s promises no gaps, and its highest number for %d requests is %d", v.Name, clients*each, all[len(all)-1])
		}
	}
}

// TestTwoReadersGetOneNumber shows the flaw of get-set, step by step.
func TestTwoReadersGetOneNumber(t *testing.T) {
	s := openServer(t, "process")
	v, _ := Find("get-set")
	var got [2]int64
	var cs [2]*stepped.Client
	for i := range cs {
		c := client(t, s)
		g := generator(t, v, c, "{two}thread")
		cs[i] = stepped.Start(c, func(ctx context.Context) (err error) {
			got[i], err = g.Next(ctx, "", lockimpl.Lock{})
			return err
		})
		t.Cleanup(cs[i].Crash)
	}
	for _, c := range []*stepped.Client{cs[0], cs[1], cs[0], cs[1]} { // get, get, set, set
		c.Step()
	}
	if got != [2]int64{1, 1} {
		t.Errorf("the two clients got %v; the schedule makes both get 1", got)
	}
}

// TestScriptKnowsItsRequests checks that a request that is sent again leaves no gap.
func TestScriptKnowsItsRequests(t *testing.T) {
	s := openServer(t, "process")
	v, _ := Find("script")
	g := generator(t, v, client(t, s), "{again}thread")
	for i, want := range []int64{1, 1, 2} {
		request := []string{"a", "a", "b"}[i]
		if n, err := g.Next(t.Context(), request, lockimpl.Lock{}); err != nil || n != want {
			t.Errorf("request %s: %d, %v; want %d", request, n, err, want)
		}
	}
}
