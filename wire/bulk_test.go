package wire

import (
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"oversell/internal/servertest"
)

// TestAbsurdLength checks that Redis refuses an absurd length at once through the proxy, too: the
// proxy neither waits for an argument that never comes nor allocates memory for it.
func TestAbsurdLength(t *testing.T) {
	addr, _ := servertest.Start(t)
	p := mustListen(t, Options{Listen: "127.0.0.1:0", To: addr, Decide: func(Command) Action { return Action{} }})
	for _, request := range []string{"*1\r\n$99999999999\r\n", "*2\r\n$3\r\nGET\r\n$536870913\r\n", "*1\r\n$999999999999999999\r\n", "*1\r\n$-7\r\n", "*99999999999\r\n"} {
		want := answerTo(t, addr, request)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := answerTo(t, p.Addr(), request)
		runtime.ReadMemStats(&after)
		if got != want || got == "" {
			t.Errorf("%q is answered through the proxy by %q; want %q", request, got, want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 10<<20 {
			t.Errorf("%q made the proxy take %d bytes", request, took)
		}
	}
}

// answerTo sends a request and returns everything that arrives until the other end closes the connection.
func answerTo(t *testing.T, addr, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(c, "PING\r\n"+request)
	b, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("%q: %v", request, err)
	}
	return string(b)
}
