package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"oversell/internal/freeport"
	"oversell/internal/servertest"
	"oversell/server/instance"
)

func openErr(t *testing.T, s Spec) error {
	t.Helper()
	tg, err := Open(t.Context(), s)
	if err == nil {
		tg.Close()
	}
	return err
}

func TestAddressOfARunningServer(t *testing.T) {
	addr, c := servertest.Start(t)
	tg := mustOpen(t, Spec{Target: "redis://" + addr + "/3"})
	if tg.Kind != Address || tg.Addrs[0] != addr || tg.ServerVersion == "unknown" || tg.PID(0) != 0 || tg.Topology != "single" {
		t.Errorf("unexpected: %+v", tg)
	}
	client := tg.Client(0, ConnOptions{})
	defer client.Close()
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := client.Info(t.Context(), "keyspace").Val(); !strings.Contains(got, "db3:keys=1") {
		t.Errorf("the database of the address is not used: %q", got)
	}
	if err := tg.Close(); err != nil || c.Gone() {
		t.Errorf("close = %v; server of somebody else stopped: %v", err, c.Gone())
	}
}

func TestNothingAnswers(t *testing.T) {
	port, err := freeport.One()
	if err != nil {
		t.Fatal(err)
	}
	addr := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}).String()
	servertest.WantError(t, openErr(t, Spec{Target: "redis://" + addr}), ErrEnvironment, "no Redis answers at "+addr+": connection refused")
}

func TestUnknownHost(t *testing.T) {
	if testing.Short() {
		t.Skip("asks a name server")
	}
	servertest.WantError(t, openErr(t, Spec{Target: "redis://no-such-host.invalid"}), ErrEnvironment, "look up the host no-such-host.invalid")
}

func TestSomethingElseAnswers(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	secureWeb := httptest.NewTLSServer(http.NotFoundHandler())
	defer secureWeb.Close()
	slammed, _ := listen(t, func(c net.Conn) { c.Close() })
	pongs, _ := listen(t, pong)
	plain, _ := servertest.Start(t)
	strip := func(url string) string { return url[strings.Index(url, "://")+3:] }
	for _, c := range []struct{ name, url, want string }{
		{"web", "redis://" + strip(web.URL), "answers, but not in the Redis protocol"},
		{"pong", "redis://" + pongs, "answers, but not in the Redis protocol"},
		{"closes", "redis://" + slammed, "closes the connection without an answer"},
		{"web over TLS", "rediss://" + strip(secureWeb.URL) + "?skip_verify=true", "answers, but not in the Redis protocol"},
		{"TLS to a plain server", "rediss://" + plain, "did not answer the TLS handshake within 3s (for a connection without TLS write redis://)"},
		{"TLS to a plain web server", "rediss://" + strip(web.URL), "does not speak TLS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := openErr(t, Spec{Target: c.url})
			servertest.WantError(t, err, ErrEnvironment, c.want)
			t.Log(err)
		})
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	addr, _ := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	begin := time.Now()
	servertest.WantError(t, openErr(t, Spec{Target: "redis://" + addr}), ErrEnvironment, "did not answer within 3s")
	if d := time.Since(begin); d > instance.ProbeTimeout+2*time.Second {
		t.Errorf("noticed only after %v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, Spec{Target: "redis://" + addr})
	servertest.WantError(t, err, ErrEnvironment, "context canceled")
}

func TestPasswords(t *testing.T) {
	addr, _ := servertest.Start(t, "--requirepass", "topsecret")
	open, _ := servertest.Start(t)
	servertest.WantError(t, openErr(t, Spec{Target: "redis://" + addr}), ErrEnvironment, "wants a password")
	servertest.WantError(t, openErr(t, Spec{Target: "redis://:secret@" + addr}), ErrEnvironment, "refuses the user or the password")
	servertest.WantError(t, openErr(t, Spec{Target: "redis://bob:secret@" + addr}), ErrEnvironment, "refuses the user or the password")
	servertest.WantError(t, openErr(t, Spec{Target: "redis://" + open + "/99"}), ErrEnvironment, "has no database 99")
	tg := mustOpen(t, Spec{Target: "redis://:topsecret@" + addr})
	if text := strings.Join(append(tg.Addrs, tg.Why, tg.Caveat), " "); strings.Contains(text, "secret") {
		t.Errorf("a password is shown: %s", text)
	}
	c := tg.Client(0, ConnOptions{})
	defer c.Close()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("ping with the right password: %v", err)
	}
	err := openErr(t, Spec{Target: "redis://:secret@" + open})
	t.Logf("a password for a server without one: %v", err)
}

func TestAnAccountThatMayNotAsk(t *testing.T) {
	addr, _ := servertest.Start(t, "--user", "clerk", "on", ">pass", "~*", "+@all", "-info")
	tg := mustOpen(t, Spec{Target: "redis://clerk:pass@" + addr})
	if tg.ServerVersion != "unknown" || tg.Caveat == "" {
		t.Errorf("unexpected: %+v", tg)
	}
}

func TestTheSameServerTwice(t *testing.T) {
	addr, _ := servertest.Start(t)
	other, _ := servertest.Start(t)
	_, port := splitPort(t, addr)
	twice := "redis://" + addr + ",redis://" + net.JoinHostPort("localhost", strconv.Itoa(port)) + "/1"
	servertest.WantError(t, openErr(t, Spec{Target: twice}), ErrUsage, "are the same server")
	tg := mustOpen(t, Spec{Target: "redis://" + addr + ",redis://" + other, Topology: "masters:2"})
	if tg.Nodes() != 2 || tg.Topology != "masters:2" {
		t.Errorf("unexpected: %+v", tg)
	}
}

func TestTLS(t *testing.T) {
	cert, key := selfSigned(t)
	addr, _ := servertest.Start(t, "--tls-port", "0", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no", "--requirepass", "topsecret")
	servertest.WantError(t, openErr(t, Spec{Target: "rediss://:topsecret@" + addr}), ErrEnvironment, "signed by an unknown authority")
	servertest.WantError(t, openErr(t, Spec{Target: "redis://:topsecret@" + addr}), ErrEnvironment, addr)
	tg := mustOpen(t, Spec{Target: "rediss://:topsecret@" + addr + "?skip_verify=true"})
	c := tg.Client(0, ConnOptions{PoolSize: 3})
	defer c.Close()
	if err := Warm(t.Context(), 0, c); err != nil {
		t.Fatal(err)
	}
	if n := c.PoolStats().TotalConns; n != 3 {
		t.Errorf("%d connections over TLS; want 3", n)
	}
}

func selfSigned(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "oversell test"},
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	save := func(name, kind string, data []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return save("cert.pem", "CERTIFICATE", cert), save("key.pem", "PRIVATE KEY", der)
}
