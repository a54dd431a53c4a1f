package system

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/internal/child"
	"oversell/internal/exactjson"
	"oversell/internal/freeport"
	"oversell/internal/printable"
	"oversell/variant"
)

// service describes how to reach a sale that is an HTTP service.
type service struct {
	// Base is the address that all paths are relative to.
	Base string `yaml:"base"`
	// Start is the program that serves it; empty if it already runs.
	Start []string `yaml:"start"`

	Reset  *endpoint `yaml:"reset"`
	Buy    *endpoint `yaml:"buy"`
	Refund *endpoint `yaml:"refund"`
	Left   *endpoint `yaml:"left"`
	Orders *endpoint `yaml:"orders"`
}

// endpoint is one request with the meanings of its responses.
type endpoint struct {
	Method  string            `yaml:"method"`
	Path    string            `yaml:"path"`
	Body    string            `yaml:"body"`
	Headers map[string]string `yaml:"headers"`

	OK       *match `yaml:"ok"`
	SoldOut  *match `yaml:"sold-out"`
	Repeated *match `yaml:"repeated"`
	Stale    *match `yaml:"stale"`

	// Result is the JSON path of the answer: "left", "stock.left", "[].id".
	Result string `yaml:"result"`
	// Quantity is the JSON path of an order's pieces; empty: each order is for one.
	Quantity string `yaml:"quantity"`
}

// match matches responses.
type match struct {
	Status []int          `yaml:"status"`
	JSON   map[string]any `yaml:"json"`
}

// longestBody is the maximum length of a body. A longer one is no answer, because the rest of it may matter.
const longestBody = 16 << 20

// complete validates a service, and fills in defaults.
func (s *service) complete(of variant.Object) error {
	switch u, err := url.Parse(strings.ReplaceAll(s.Base, "{port}", "1")); {
	case of != variant.Sale:
		return fmt.Errorf("http is for a sale; a %s is reached by command", of)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("http.base %q: an address is wanted, such as http://127.0.0.1:8080", s.Base)
	case strings.Contains(s.Base, "{port}") && len(s.Start) == 0:
		return errors.New("http.base has {port}, which is a free port for http.start, and there is no start")
	case s.Buy == nil || s.Reset == nil:
		return errors.New("http needs buy and reset: how an order is placed, and how the stock is set")
	}
	if err := (place{"http.base", []string{"{port}"}, false}).check(s.Base); err != nil {
		return err
	}
	endpoints := s.endpoints()
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		if e := endpoints[name]; e != nil {
			if err := e.complete(name, s.changes(e)); err != nil {
				return fmt.Errorf("http.%s%w", name, err)
			}
		}
	}
	if s.Left != nil && s.Left.Result == "" || s.Orders != nil && s.Orders.Result == "" {
		return errors.New(`http.left and http.orders need result: where the number, or the ids, stand in the JSON, such as "left" and "[].id"`)
	}
	return nil
}

func (s *service) endpoints() map[string]*endpoint {
	return map[string]*endpoint{"reset": s.Reset, "buy": s.Buy, "refund": s.Refund, "left": s.Left, "orders": s.Orders}
}

// changes reports whether a request changes something: it must not be sent twice.
func (s *service) changes(e *endpoint) bool { return e != s.Left && e != s.Orders }

// methods are the valid methods of a request.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// placeholders are the valid placeholders of each request.
var placeholders = map[string][]string{
	"reset":  {"{stock}", "{product}", "{client}"},
	"buy":    {"{order}", "{quantity}", "{product}", "{client}"},
	"refund": {"{order}", "{quantity}", "{product}", "{client}"},
	"left":   {"{product}", "{client}"},
	"orders": {"{product}", "{client}"},
}

// complete is service.complete for one request. The error text follows the request's name.
func (e *endpoint) complete(name string, changes bool) error {
	e.Method = strings.ToUpper(e.Method)
	switch {
	case e.Method == "" && changes:
		e.Method = http.MethodPost
	case e.Method == "":
		e.Method = http.MethodGet
	case !slices.Contains(methods, e.Method):
		return fmt.Errorf(".method %q: want one of %s", e.Method, strings.Join(methods, ", "))
	}
	if !strings.HasPrefix(e.Path, "/") {
		return fmt.Errorf(".path %q: a path begins with /", e.Path)
	}
	if _, err := url.Parse("http://h" + anything.Replace(e.Path)); err != nil {
		return fmt.Errorf(".path %q: want a path as a URL has it: %w", e.Path, errors.Unwrap(err))
	}
	if err := e.completeMatches(); err != nil {
		return err
	}
	at := place{"", placeholders[name], true}
	for _, part := range e.parts() {
		if err := at.check(part); err != nil {
			return err
		}
	}
	for key, path := range map[string]string{"result": e.Result, "quantity": e.Quantity} {
		if strings.ContainsAny(strings.ReplaceAll(path, "[]", ""), "[]") {
			return fmt.Errorf(".%s %q: want names joined by dots, and [] for each element of a list", key, path)
		}
	}
	if e.Repeated != nil && !e.has("{order}") {
		return errors.New(".repeated: the service cannot tell one order from another, since no {order} stands in the path, the body or the headers")
	}
	return e.checkHeaders()
}

// anything replaces each placeholder by a sample value.
var anything = strings.NewReplacer("{order}", "1", "{client}", "1", "{quantity}", "1", "{stock}", "1", "{product}", "1")

// parts returns the texts that may contain placeholders.
func (e *endpoint) parts() []string {
	return append(slices.Collect(maps.Values(e.Headers)), e.Path, e.Body)
}

// has reports whether the request contains a placeholder.
func (e *endpoint) has(placeholder string) bool {
	return slices.ContainsFunc(e.parts(), func(part string) bool { return strings.Contains(part, placeholder) })
}

// token matches the name of a header.
var token = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// ours are headers that net/http sets to delimit the body.
var ours = []string{"Content-Length", "Transfer-Encoding", "Trailer"}

// checkHeaders refuses headers that cannot be sent. The error text follows the request's name.
func (e *endpoint) checkHeaders() error {
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		value, key := anything.Replace(e.Headers[name]), http.CanonicalHeaderKey(name)
		switch host, err := url.Parse("http://" + value); {
		case !token.MatchString(name):
			return fmt.Errorf(".headers: the name %q: want letters, digits and dashes", name)
		case seen[key] != "":
			return fmt.Errorf(".headers: %s and %s are the same header", seen[key], name)
		case slices.Contains(ours, key):
			return fmt.Errorf(".headers: leave out %s: it follows from the body", name)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return fmt.Errorf(".headers.%s %q: want no line breaks or other control characters", name, value)
		case key == "Host" && (err != nil || host.Host != value):
			return fmt.Errorf(".headers.%s %q: want a host, such as shop.example:8080", name, value)
		}
		seen[key] = name
	}
	return nil
}

// fits refuses a load that the service does not support.
func (s *service) fits(refunds bool, quantity int) error {
	switch {
	case refunds && s.Refund == nil:
		return errors.New("the file has no http.refund: leave out --refund")
	case quantity > 1 && !s.Buy.has("{quantity}"):
		return fmt.Errorf("http.buy has no {quantity}, so each order is for one piece: leave out --quantity %d", quantity)
	case quantity > 1 && s.Orders != nil && s.Orders.Quantity == "":
		return fmt.Errorf("the file has no http.orders.quantity, so each order counts as one piece: leave out --quantity %d", quantity)
	case quantity > 1 && refunds && !s.Refund.has("{quantity}"):
		return fmt.Errorf("http.refund has no {quantity}, so one piece is refunded at a time: leave out --quantity %d, or --refund", quantity)
	}
	return nil
}

// Fits refuses a load that the system's file does not support.
func (s *System) Fits(refunds bool, quantity int) error {
	if s.service == nil {
		return nil
	}
	return s.service.fits(refunds, quantity)
}

// completeMatches validates the meanings of responses. The first match counts: a match that is hidden by an earlier
// one would never count.
func (e *endpoint) completeMatches() error {
	names := []string{"repeated", "sold-out", "stale", "ok"}
	matches := []*match{e.Repeated, e.SoldOut, e.Stale, e.OK}
	for i, m := range matches {
		if m == nil {
			continue
		}
		if err := m.complete(); err != nil {
			return fmt.Errorf(".%s%w", names[i], err)
		}
		for k, before := range matches[:i] {
			if hidden, where := m.hiddenBy(before); hidden {
				return fmt.Errorf(": %s and %s mean the same answer%s", names[i], names[k], where)
			}
		}
	}
	if e.OK == nil {
		e.OK = &match{Status: []int{200, 201, 204}}
	}
	return nil
}

// complete validates a match, and converts its values to JSON values.
func (m *match) complete() error {
	switch {
	case m.Status == nil && len(m.JSON) == 0:
		return errors.New(": want status, json or both")
	case m.Status != nil && len(m.Status) == 0:
		return errors.New(".status: want a status, such as 409")
	}
	for _, status := range m.Status {
		if status < 200 || status > 599 { // earlier ones are not final responses
			return fmt.Errorf(".status %d: want 200 to 599", status)
		}
	}
	for key, v := range m.JSON {
		text, err := json.Marshal(v)
		if err == nil {
			m.JSON[key], err = document(text)
		}
		if err != nil {
			return fmt.Errorf(".json.%s: want a value that JSON has (%w)", key, err)
		}
	}
	return nil
}

// hiddenBy reports whether all responses that m matches with one of its statuses match before, too, and with which
// status.
func (m *match) hiddenBy(before *match) (hidden bool, where string) {
	if before == nil {
		return false, ""
	}
	for key, v := range before.JSON {
		if of, ok := m.JSON[key]; !ok || !same(of, v) {
			return false, ""
		}
	}
	for _, status := range m.Status {
		if len(before.Status) == 0 || slices.Contains(before.Status, status) {
			return true, fmt.Sprintf(" with status %d", status)
		}
	}
	if len(m.Status) == 0 && len(before.Status) > 0 {
		return true, fmt.Sprintf(" with status %d", before.Status[0])
	}
	return len(m.Status) == 0, ""
}

// Local reports whether the system is on this machine, judged by its address.
func (s *System) Local() bool {
	if s.service == nil {
		return true
	}
	u, err := url.Parse(strings.ReplaceAll(s.service.Base, "{port}", "1"))
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// visitor is one client of a service.
type visitor struct {
	system  *System
	http    *http.Client
	base    string
	program *process // nil if the service already ran
}

// gone implements caller.
func (v *visitor) gone() bool { return v.program != nil && v.program.gone() }

// call implements caller.
func (v *visitor) call(ctx context.Context, r request) (answer, error) {
	s := v.system.service
	if v.gone() {
		return answer{}, v.program.err(r)
	}
	fill := strings.NewReplacer("{order}", strconv.FormatInt(r.Order, 10), "{client}", strconv.FormatInt(r.Client, 10), "{quantity}", strconv.Itoa(r.Quantity),
		"{stock}", strconv.FormatInt(r.Stock, 10), "{product}", url.PathEscape(r.Product))
	switch r.Op {
	case "open":
		return v.send(ctx, s.Reset, fill)
	case "buy":
		return v.send(ctx, s.Buy, fill)
	case "refund":
		if s.Refund == nil {
			return answer{}, fmt.Errorf("%s has no refund: add http.refund", v.system.Name)
		}
		return v.send(ctx, s.Refund, fill)
	}
	return v.state(ctx, fill)
}

// state requests the stock left, and the orders, as far as the service reports them.
func (v *visitor) state(ctx context.Context, fill *strings.Replacer) (answer, error) {
	s := v.system.service
	if s.Left == nil {
		return answer{}, fmt.Errorf("%s does not report what is left: add http.left", v.system.Name)
	}
	a := answer{OK: true}
	left, err := v.numbers(ctx, s.Left, s.Left.Result, fill)
	if err != nil {
		return a, err
	}
	if len(left) != 1 {
		return a, fmt.Errorf("%s: %d numbers stand at %s of the answer to %s; one is wanted", v.system.Name, len(left), s.Left.Result, s.Left.Path)
	}
	a.Left = &left[0]
	if s.Orders == nil {
		return a, nil
	}
	var sold int64
	if s.Orders.Quantity != "" {
		pieces, err := v.numbers(ctx, s.Orders, s.Orders.Quantity, fill)
		if err != nil {
			return a, err
		}
		for _, n := range pieces {
			if n > 0 && sold > math.MaxInt64-n || n < 0 && sold < math.MinInt64-n {
				return a, fmt.Errorf("%s: the quantities of the orders are more than a whole number holds", v.system.Name)
			}
			sold += n
		}
	} else {
		ids, err := v.values(ctx, s.Orders, s.Orders.Result, fill)
		if err != nil {
			return a, err
		}
		sold = int64(len(ids))
	}
	a.Sold = &sold
	return a, nil
}

// send sends a request and interprets the response.
func (v *visitor) send(ctx context.Context, e *endpoint, fill *strings.Replacer) (answer, error) {
	got, err := v.exchange(ctx, e, fill)
	if err != nil {
		return answer{}, err
	}
	status, body := got.status, got.body
	a := answer{OK: true}
	switch {
	case e.Repeated.matches(status, body):
		a.Repeated = true
	case e.SoldOut.matches(status, body):
		a.OK, a.Refused = false, "sold-out"
	case e.Stale.matches(status, body):
		a.OK, a.Refused = false, "stale"
	case e.OK.matches(status, body):
	default:
		return answer{}, v.undeclared(e, got)
	}
	if e.Result != "" && a.OK {
		if n, err := numbersAt(body, e.Result); err == nil && len(n) == 1 {
			a.Left = &n[0]
		}
	}
	return a, nil
}

// response is the response to a request.
type response struct {
	status int
	body   []byte
	next   bool // it is a page, followed by another
}

// exchange makes one HTTP request.
func (v *visitor) exchange(ctx context.Context, e *endpoint, fill *strings.Replacer) (got response, err error) {
	r, err := http.NewRequestWithContext(ctx, e.Method, strings.TrimSuffix(v.base, "/")+fill.Replace(e.Path), strings.NewReader(fill.Replace(e.Body)))
	if err != nil {
		return got, err
	}
	if e.Body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range e.Headers {
		if value = fill.Replace(value); http.CanonicalHeaderKey(name) == "Host" {
			r.Host = value // net/http ignores Host among the headers
			continue
		}
		r.Header.Set(name, value)
	}
	if v.system.service.changes(e) {
		once(r)
	}
	answered, err := v.http.Do(r)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return got, fmt.Errorf("%s %s of %s: %w", e.Method, e.Path, v.system.Name, err)
	}
	defer answered.Body.Close()
	if answered.StatusCode == http.StatusSwitchingProtocols { // its body is the connection and has no end
		return got, fmt.Errorf("%s %s of %s: an answer that the file does not declare: %s", e.Method, e.Path, v.system.Name, answered.Status)
	}
	got.body, err = io.ReadAll(io.LimitReader(answered.Body, longestBody+1))
	switch {
	case err != nil:
		return got, fmt.Errorf("%s %s of %s: %w", e.Method, e.Path, v.system.Name, cmp.Or(context.Cause(ctx), err))
	case len(got.body) > longestBody:
		return got, fmt.Errorf("%s %s of %s: the answer is longer than the maximum of %d MiB", e.Method, e.Path, v.system.Name, longestBody>>20)
	}
	got.status, got.next = answered.StatusCode, nextLink.MatchString(strings.Join(answered.Header.Values("Link"), ", "))
	return got, nil
}

// nextLink matches a link to the next page.
var nextLink = regexp.MustCompile(`(?i);\s*rel\s*=\s*("([^"]*\s)?next[\s"]|next\s*(;|,|$))`)

// once prevents net/http from repeating a request. It does so when a reused connection breaks without a response,
// and the method or a header declares the request idempotent. Whether it is, is what a run tests. net/http does not
// repeat a request whose body it cannot read again.
func once(r *http.Request) {
	asks := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method)
	keys := []string{"Idempotency-Key", "X-Idempotency-Key"}
	marked := slices.ContainsFunc(keys, func(key string) bool { return r.Header.Get(key) != "" })
	switch {
	case r.ContentLength > 0 && (asks || marked):
		r.GetBody = nil
	case asks: // an empty body of unknown length: nothing is sent
		r.Body, r.GetBody = struct{ io.ReadCloser }{http.NoBody}, nil
	case marked: // header names are case-insensitive, but net/http looks for these
		for _, key := range keys {
			if value := r.Header.Get(key); value != "" {
				r.Header.Del(key)
				r.Header[strings.ToLower(key)] = []string{value}
			}
		}
	}
}

// matches reports whether m matches a response; nil matches none.
func (m *match) matches(status int, body []byte) bool {
	if m == nil || len(m.Status) > 0 && !slices.Contains(m.Status, status) {
		return false
	}
	if len(m.JSON) == 0 {
		return true
	}
	parsed, err := document(body)
	doc, isObject := parsed.(map[string]any)
	if err != nil || !isObject {
		return false
	}
	for key, want := range m.JSON {
		if got, ok := doc[key]; !ok || !same(got, want) {
			return false
		}
	}
	return true
}

// numbers requests whole numbers at a path of a response.
func (v *visitor) numbers(ctx context.Context, e *endpoint, at string, fill *strings.Replacer) (ns []int64, err error) {
	err = v.reads(ctx, e, fill, func(body []byte) error {
		ns, err = numbersAt(body, at)
		return err
	})
	return ns, err
}

// values is like numbers, for values of any type.
func (v *visitor) values(ctx context.Context, e *endpoint, at string, fill *strings.Replacer) (all []any, err error) {
	err = v.reads(ctx, e, fill, func(body []byte) error {
		all, err = valuesAt(body, at)
		return err
	})
	return all, err
}

// reads reads the body of a declared response that is complete.
func (v *visitor) reads(ctx context.Context, e *endpoint, fill *strings.Replacer, read func(body []byte) error) error {
	got, err := v.exchange(ctx, e, fill)
	if err != nil {
		return err
	}
	if !e.OK.matches(got.status, got.body) {
		return v.undeclared(e, got)
	}
	if got.next {
		return fmt.Errorf("%s %s of %s: the answer is a page, and another follows it (Link: …; rel=next): want all at once", e.Method, e.Path, v.system.Name)
	}
	if err := read(got.body); err != nil {
		return fmt.Errorf("%s %s of %s: %d %s: %w", e.Method, e.Path, v.system.Name, got.status, printable.Word(short(string(got.body))), err)
	}
	return nil
}

func (v *visitor) undeclared(e *endpoint, got response) error {
	return fmt.Errorf("%s %s of %s: an answer that the file does not declare: %d %s", e.Method, e.Path, v.system.Name, got.status, printable.Word(short(string(got.body))))
}

func numbersAt(body []byte, at string) (ns []int64, err error) {
	all, err := valuesAt(body, at)
	for _, v := range all {
		n, ok := v.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%v at %s is not a number", v, at)
		}
		i, whole := exactjson.Int64(n)
		if !whole {
			return nil, fmt.Errorf("%v at %s is not a whole number of 64 bits", v, at)
		}
		ns = append(ns, i)
	}
	return ns, err
}

// valuesAt returns the values at a path in JSON: names joined by dots, and [] for each element of a list.
func valuesAt(body []byte, at string) ([]any, error) {
	doc, err := document(body)
	if err != nil {
		return nil, fmt.Errorf("the answer is not JSON: %w", err)
	}
	found := []any{doc}
	for _, step := range strings.Split(strings.TrimPrefix(strings.ReplaceAll(at, "[]", ".[]"), "."), ".") {
		var next []any
		for _, v := range found {
			switch v := v.(type) {
			case []any:
				if step != "[]" {
					return nil, fmt.Errorf("there is a list before %q of %s: [] stands for its elements", step, at)
				}
				next = append(next, v...)
			case map[string]any:
				of, ok := v[step]
				if !ok {
					return nil, fmt.Errorf("the answer has no %q of %s", step, at)
				}
				next = append(next, of)
			default:
				return nil, fmt.Errorf("there is no %q of %s in %v", step, at, v)
			}
		}
		found = next
	}
	return found, nil
}

// visit connects a client to the service, and starts the service if the file says how.
func (s *System) visit(ctx context.Context, env variant.Env) (caller, error) {
	v := &visitor{system: s, http: s.http, base: s.service.Base}
	if len(s.service.Start) == 0 {
		return v, nil
	}
	p, err := s.join(ctx, env, (*process).serve)
	if err != nil {
		return nil, err
	}
	v.program, v.base = p, p.filled(v.base)
	return v, nil
}

// serve starts the program of a service, and waits until it accepts connections.
func (p *process) serve(ctx context.Context) {
	defer close(p.ready)
	s := p.system
	err := p.choosePort()
	if err != nil {
		p.fail(err)
		return
	}
	if err := p.unserved(ctx); err != nil {
		p.fail(err)
		return
	}
	cmd := p.command(s.service.Start)
	if p.child, err = child.Start(cmd); err != nil {
		p.fail(err)
		return
	}
	s.launched(p)
	go func() {
		<-p.child.Exited()
		p.fail(p.ended())
		p.child.KillAll()
	}()
	limited, cancel := context.WithTimeoutCause(ctx, s.start, fmt.Errorf("nothing listens at %s after %v", p.filled(s.service.Base), s.start))
	defer cancel()
	if err := p.listens(limited); err != nil {
		p.fail(err)
		p.child.KillAll()
	}
}

// choosePort finds a free port outside the range from which the operating system picks ports.
func (p *process) choosePort() error {
	port, err := freeport.One()
	if err != nil {
		return fmt.Errorf("no port was found for the service: %w", err)
	}
	p.port = port
	return nil
}

// address returns the address on which the service must accept connections.
func (p *process) address() (string, error) {
	u, err := url.Parse(p.filled(p.system.service.Base))
	if err != nil || u.Port() != "" {
		return u.Host, err
	}
	return net.JoinHostPort(u.Hostname(), u.Scheme), nil
}

// unserved refuses an address that accepts connections before the service is started.
func (p *process) unserved(ctx context.Context) error {
	addr, err := p.address()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil
	}
	return errors.Join(fmt.Errorf("%s is already in use, so http.start cannot serve there", addr), conn.Close())
}

// listens waits until the base address accepts connections.
func (p *process) listens(ctx context.Context) error {
	addr, err := p.address()
	if err != nil {
		return err
	}
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			return errors.Join(conn.Close(), p.why()) // p.why is set if the program has ended
		}
		select {
		case <-time.After(listenEvery):
		case <-p.over:
			return p.why()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// listenEvery is the interval of connection attempts to a starting service.
const listenEvery = 20 * time.Millisecond

// newHTTP creates the HTTP client shared by all clients of a service.
func newHTTP() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, mostClients
	t.Proxy = nil
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// command returns the command of a process or a service, with its environment.
func (p *process) command(words []string) *exec.Cmd {
	s := p.system
	args := slices.Clone(words)
	for i := range args {
		args[i] = p.filled(args[i])
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stderr, cmd.Env = s.dir, &p.stderr, os.Environ()
	cmd.WaitDelay = drained
	for name, value := range s.env {
		cmd.Env = append(cmd.Env, name+"="+p.filled(value))
	}
	return cmd
}
