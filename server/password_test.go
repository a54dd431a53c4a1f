package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"oversell/internal/servertest"
)

// TestNoMessageShowsAPassword checks that no message contains the password, however the address is misspelt.
func TestNoMessageShowsAPassword(t *testing.T) {
	const password = "correct-horse"
	for _, address := range []string{
		"redis://user:correct-horse", "redis://:correct-horse", "redis:user:correct-horse@127.0.0.1:6379", "user:correct-horse@127.0.0.1",
		"rdis://:correct-horse@127.0.0.1:1", "redis://:correct-horse@127.0.0.1:1#x", "redis://:correct-horse@127.0.0.1:port", "redis://:correct-horse#@127.0.0.1",
		"redis://127.0.0.1:1?password=correct-horse", "redis://:correct-horse,2@127.0.0.1:1", "redis://:correct-horse/2@127.0.0.1:1", "redis://:correct-horse@127.0.0.1:1/x",
		"redis://:correct-horse%zz@127.0.0.1:1", "redis://:correct-horse@127.0.0.1:1,redis://:correct-horse@127.0.0.1:1", "redis://:correct-horse@127.0.0.1:1",
	} {
		s := Spec{Target: address}
		_, err := Open(t.Context(), s)
		if err == nil {
			t.Errorf("%s opens", address)
			continue
		}
		for _, text := range []string{err.Error(), fmt.Sprintf("%v %+v %#v %s", s, s, s, s)} {
			if strings.Contains(text, password) {
				t.Errorf("%s is told as %s", address, text)
			}
		}
	}
}

// TestAServerThatRepeatsThePassword checks that a password is not shown even if the server repeats it in an error.
func TestAServerThatRepeatsThePassword(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewReader(c); ; {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					if strings.Contains(line, "correct-horse") {
						io.WriteString(c, "-ERR unknown command `AUTH`, with args beginning with: `correct-horse`, \r\n")
					}
				}
			}()
		}
	}()
	_, err = Open(t.Context(), Spec{Target: "redis://:correct-horse@" + l.Addr().String()})
	if err == nil || strings.Contains(err.Error(), "correct-horse") || !strings.Contains(err.Error(), "***") {
		t.Errorf("it is told as %v", err)
	}
}

func TestPasswordFromTheEnvironment(t *testing.T) {
	addr, _ := servertest.Start(t, "--requirepass", "correct-horse")
	_, err := Open(t.Context(), Spec{Target: "redis://" + addr})
	servertest.WantError(t, err, ErrEnvironment, "wants a password", PasswordVariable)
	t.Setenv(PasswordVariable, "correct-horse")
	mustOpen(t, Spec{Target: "redis://" + addr})
	_, err = Open(t.Context(), Spec{Target: "redis://:another@" + addr})
	servertest.WantError(t, err, ErrEnvironment, "refuses the user or the password")
}
