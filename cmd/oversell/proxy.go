package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/faults"
	"oversell/internal/limits"
	"oversell/internal/printable"
	"oversell/reports"
	"oversell/server"
)

func proxyCommand(code *int) *cobra.Command {
	var (
		o           faults.ProxyOptions
		sentences   []string
		allowRemote bool
	)
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Proxy a Redis and inject faults on the wire",
		Long: `Proxy the connections of any client, in any language, to a Redis, and lose, delay
or interrupt the traffic. Let the client connect to the printed address. Every
injection prints a line on stdout; Ctrl-C ends the proxy, which then prints how
often each fault fired.

The faults are those of the wire; see oversell list faults. Conditions that only
the clients of oversell run know (holder, waiter, client N, in OPERATION) are
refused. Times count from the start of the proxy. The exit code is 0 when every
fault fired, 3 when one never did, 2 for wrong usage, and 5 for an environment error.`,
		Example: `  oversell proxy --listen 127.0.0.1:7000 --to 127.0.0.1:6379 --fault 'drop-reply DECR nth 7'
  oversell proxy --fault 'late EVALSHA key Lock:* 50ms 5%' --fault 'cut for 2s every 10s'`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Faults, err = parseFaults(sentences); err != nil {
				return err
			}
			if err := checkAddresses(cmd.Context(), o, allowRemote); err != nil {
				return err
			}
			if !cmd.Flags().Changed("seed") {
				o.Seed = uint64(time.Now().UnixNano() % 1e9)
			}
			*code, err = serve(cmd.Context(), o, cmd.OutOrStdout())
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Listen, "listen", "127.0.0.1:0", "address for clients to connect to; port 0: a free one")
	f.StringVar(&o.To, "to", "127.0.0.1:6379", "address of the server")
	f.StringArrayVar(&sentences, "fault", nil, "fault to inject, as a sentence; may be given several times (see: oversell list faults)")
	f.Uint64Var(&o.Seed, "seed", 0, "fixes every random choice (default: from the clock, and printed)")
	f.BoolVar(&allowRemote, "allow-remote", false, "allow addresses of other machines")
	limits.Proxy.Bind(f)
	return cmd
}

// parseFaults parses the sentences and refuses faults that a proxy cannot inject.
func parseFaults(sentences []string) (fs []faults.Fault, err error) {
	for _, s := range sentences {
		f, err := faults.Parse(s)
		if err == nil {
			err = faults.ForProxy(f)
		}
		if err != nil {
			return nil, err
		}
		fs = append(fs, f)
	}
	return fs, nil
}

// checkAddresses refuses other machines unless they are allowed: the proxy would disturb a foreign server, or open
// a Redis to the network.
func checkAddresses(ctx context.Context, o faults.ProxyOptions, allowRemote bool) error {
	for _, a := range []struct {
		flag, addr string
		least      int
	}{{"--listen", o.Listen, 0}, {"--to", o.To, 1}} {
		if _, port, err := net.SplitHostPort(a.addr); err != nil || port == "" {
			if strings.Contains(a.addr, "@") || strings.Contains(a.addr, "://") { // it may contain a password
				return fmt.Errorf("%s must be host:port, as 127.0.0.1:6379, without redis:// and password: clients log in through the proxy", a.flag)
			}
			return fmt.Errorf("%s %q must be like 127.0.0.1:6379", a.flag, a.addr)
		} else if n, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil || n < a.least {
			return fmt.Errorf("%s %s: the port must be %d to 65535", a.flag, printable.Word(a.addr), a.least)
		}
	}
	if allowRemote {
		return nil
	}
	if !opensLocally(ctx, o.Listen) {
		return fmt.Errorf("--listen %s opens the server to other machines; that needs --allow-remote", o.Listen)
	}
	if err := (server.Spec{Target: "redis://" + o.To}).Validate(ctx); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	return nil
}

// opensLocally reports whether an address accepts connections from this machine only.
func opensLocally(ctx context.Context, addr string) bool {
	host, _, _ := net.SplitHostPort(addr)
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	if host == "" {
		return false
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for _, ip := range ips {
		if !ip.Unmap().IsLoopback() {
			return false
		}
	}
	return err == nil
}

// serve runs a proxy until ctx ends, and returns the exit code.
func serve(ctx context.Context, o faults.ProxyOptions, out io.Writer) (code int, err error) {
	lines := newLineWriter(out)
	o.Injected = func(s faults.ProxyInjection) { lines.print(injectionLine(s)) }
	p, err := faults.ListenProxy(ctx, o)
	if err != nil {
		lines.close()
		return 0, environment{err}
	}
	lines.print(fmt.Sprintf("listening on %s for %s, seed %d; Ctrl-C ends it", p.Addr(), o.To, o.Seed))
	<-ctx.Done()
	closed := p.Close()
	for _, c := range p.Counts() {
		lines.print(countLine(c))
		if c.Fired == 0 {
			code = reports.ExitInconclusive
		}
	}
	if err := lines.close(); err != nil {
		return code, printing(err)
	}
	if closed != nil {
		return code, environment{closed}
	}
	return code, nil
}

// injectionLine describes one injection: when, what, where.
func injectionLine(s faults.ProxyInjection) string {
	line := fmt.Sprintf("%9.3fs  %s", s.At.Seconds(), s.Fault)
	if s.Conn != 0 {
		line += fmt.Sprintf(": connection %d, %s", s.Conn, s.Command)
	}
	if s.Key != "" {
		line += " " + printable.Word(s.Key)
	}
	return line
}

func countLine(c faults.Count) string {
	switch c.Fired {
	case 0:
		return fmt.Sprintf("%s: never fired", c.Fault)
	case 1:
		return fmt.Sprintf("%s: fired once", c.Fault)
	}
	return fmt.Sprintf("%s: fired %d times", c.Fault, c.Fired)
}

// lineWriter prints lines from several goroutines. They do not wait for it unless it is thousands of lines behind:
// a stalled terminal must not delay the wire.
type lineWriter struct {
	lines chan string
	done  chan struct{}
	err   error // the first error; valid when done is closed
}

func newLineWriter(w io.Writer) *lineWriter {
	l := &lineWriter{lines: make(chan string, 4096), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for line := range l.lines {
			if _, err := fmt.Fprintln(w, printable.Text(line)); l.err == nil {
				l.err = err
			}
		}
	}()
	return l
}

func (l *lineWriter) print(line string) { l.lines <- line }

// close waits until everything is printed.
func (l *lineWriter) close() error {
	close(l.lines)
	<-l.done
	return l.err
}
