package system

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oversell/internal/freeport"
	"oversell/internal/servertest"
	"oversell/lockimpl"
	"oversell/stockimpl"
)

// serviceAt returns a sale that is a service at an address; more holds further lines of its file.
func serviceAt(t *testing.T, base, more string) *System {
	t.Helper()
	s, err := read(t, fmt.Sprintf("name: shop\nobject: sale\nlimit: 20s\npromises: [no-oversell, no-undersell]\nhttp:\n  base: %s\n%s", base, more))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPortsThatAreTaken checks that another program that already listens at the address of a service is not taken for
// the service.
func TestPortsThatAreTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, program := range []string{"sleep 60", "exit 1", "sleep 0.05; exit 1"} {
		s := serviceAt(t, "http://"+l.Addr().String(), fmt.Sprintf("  start: [sh, -c, %q]\n  reset: {path: /}\n  buy: {path: /}", program))
		err = s.Start(t.Context(), world(t)())
		want := l.Addr().String() + " is already in use, so http.start cannot serve there"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", program, err, want)
		}
	}
}

// TestOrdersAreSentOnce checks that an order whose answer is lost is not sent again, whatever its method and headers.
func TestOrdersAreSentOnce(t *testing.T) {
	for _, how := range []string{
		"method: GET", "method: PUT", "method: HEAD", "method: OPTIONS", "method: GET, body: '{}'", "method: POST, body: '{}'",
		"method: POST, headers: {Idempotency-Key: '{order}'}", "method: POST, body: '{}', headers: {Idempotency-Key: '{order}'}",
		"method: POST, body: '{}', headers: {x-idempotency-key: '{order}'}",
	} {
		var came atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/reset" {
				return
			}
			if strings.Contains(how, "dempotency") && r.Header.Get("Idempotency-Key")+r.Header.Get("X-Idempotency-Key") != "7" {
				t.Errorf("%s: the header did not come: %v", how, r.Header)
			}
			if strings.Contains(how, "body") != (r.ContentLength == 2) || r.TransferEncoding != nil {
				t.Errorf("%s: the body has %d bytes, %v", how, r.ContentLength, r.TransferEncoding)
			}
			came.Add(1)
			panic(http.ErrAbortHandler)
		}))
		s := serviceAt(t, server.URL, fmt.Sprintf("  reset: {method: POST, path: /reset}\n  buy: {path: /buy, %s}", how))
		sale := s.Sale().New(world(t)(), "phone")
		if err := sale.Open(t.Context(), 5); err != nil { // opens the connection on which the order is sent
			t.Fatal(err)
		}
		if _, err := sale.Buy(t.Context(), stockimpl.Order{ID: 7, Quantity: 1}, lockimpl.Lock{}); err == nil {
			t.Errorf("%s: an order without an answer was placed", how)
		}
		if came.Load() != 1 {
			t.Errorf("%s: one order was sent %d times", how, came.Load())
		}
		server.Close()
	}
}

// TestMethodsThatAreLeftOut checks the methods of requests for which the file names none: POST for requests that change
// something, and GET for the others.
func TestMethodsThatAreLeftOut(t *testing.T) {
	said := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said[r.URL.Path] = r.Method
		fmt.Fprint(w, `{"left":5}`)
	}))
	defer server.Close()
	s := serviceAt(t, server.URL, "  reset: {path: /reset}\n  buy: {path: /buy}\n  refund: {path: /refund}\n  left: {path: /left, result: left}")
	sale := s.Sale().New(world(t)(), "phone")
	order := stockimpl.Order{ID: 7, Quantity: 1}
	opened := sale.Open(t.Context(), 5)
	_, bought := sale.Buy(t.Context(), order, lockimpl.Lock{})
	_, refunded := sale.Refund(t.Context(), order, lockimpl.Lock{})
	_, asked := sale.State(t.Context())
	for _, err := range []error{opened, bought, refunded, asked} {
		if err != nil {
			t.Error(err)
		}
	}
	for path, want := range map[string]string{"/reset": "POST", "/buy": "POST", "/refund": "POST", "/left": "GET"} {
		if said[path] != want {
			t.Errorf("%s came by %q; want %s", path, said[path], want)
		}
	}
}

// TestStatesThatAreNotDeclared checks that an answer that the file does not declare is not read as the number left, nor
// as the orders sold.
func TestStatesThatAreNotDeclared(t *testing.T) {
	for _, c := range []struct {
		left, orders string // further fields of the request, besides path and result
		path         string // the path that is answered with status and body
		status       int
		body         string
		want         string // a part of the error; empty: no error
	}{
		{path: "/none", want: ""},
		{path: "/orders", status: 503, body: "[]", want: "GET /orders of shop: an answer that the file does not declare: 503 []"},
		{path: "/orders", status: 503, body: "[]", orders: `, quantity: "[].n"`, want: "503 []"},
		{path: "/left", status: 503, body: `{"left":0}`, want: "503"},
		{path: "/left", status: 500, body: `{"left":0}`, left: ", ok: {status: [200], json: {status: fine}}", want: "500"},
		{path: "/left", status: 200, body: `{"left":0,"status":"down"}`, left: ", ok: {status: [200], json: {status: fine}}", want: "200"},
		{path: "/left", status: 200, body: `{"left":0,"status":"fine"}`, left: ", ok: {status: [200], json: {status: fine}}"},
		{path: "/left", status: 200, body: `{"left":0} {"left":1}`, want: "not JSON"},
		{path: "/left", status: 200, body: `{"left":0,"left":5}`, want: `"left" appears twice`},
		{path: "/orders", status: 200, body: `[{"id":1,"n":9223372036854775807},{"id":2,"n":1}]`, orders: `, quantity: "[].n"`, want: "more than a whole number holds"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case c.path:
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			case "/left":
				fmt.Fprint(w, `{"left":5}`)
			case "/orders":
				fmt.Fprint(w, `[{"id":1,"n":2}]`)
			}
		}))
		s := serviceAt(t, server.URL, fmt.Sprintf("  reset: {path: /}\n  buy: {path: /}\n  left: {path: /left, result: left%s}\n  orders: {path: /orders, result: '[].id'%s}", c.left, c.orders))
		state, err := s.Sale().New(world(t)(), "phone").State(t.Context())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || err != nil && strings.Contains(err.Error(), "nil") {
			t.Errorf("%s %d %s: %v, %v; want %q", c.path, c.status, c.body, state, err, c.want)
		}
		server.Close()
	}
}

// TestPagesOfOrders checks that one page of the orders is not taken for all orders.
func TestPagesOfOrders(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Link", `</orders?page=1>; rel="first"`)
		w.Header().Add("Link", `</orders?page=1>; rel=prev, </orders?page=2>; rel="last next"`)
		fmt.Fprint(w, `[{"id":1,"left":4}]`)
	}))
	defer server.Close()
	s := serviceAt(t, server.URL, "  reset: {path: /}\n  buy: {path: /}\n  left: {path: /, result: '[].left'}\n  orders: {path: /orders, result: '[].id'}")
	_, err := s.Sale().New(world(t)(), "phone").State(t.Context())
	if want := "GET / of shop: the answer is a page, and another follows it"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
}

// TestDeclaredValues checks that a value that a file declares is compared as JSON, not by its spelling.
func TestDeclaredValues(t *testing.T) {
	for _, c := range []struct {
		declared, body string
		is             bool
	}{
		{"{code: 1000000}", `{"code":1000000}`, true},
		{"{code: 1000000}", `{"code":1e6}`, true},
		{"{code: 1000000}", `{"code":1000001}`, false},
		{"{code: 9007199254740993}", `{"code":9007199254740993}`, true},
		{"{code: 9007199254740993}", `{"code":9007199254740992}`, false},
		{"{code: 9007199254740993}", `{"code":9007199254740992.0}`, false},
		{"{code: 1.5}", `{"code":1.5}`, true},
		{"{code: 3}", `{"code":3.0}`, true},
		{"{code: 3}", `{"code":"3"}`, false},
		{`{code: "3"}`, `{"code":3}`, false},
		{`{code: "3"}`, `{"code":"3"}`, true},
		{"{error: {code: 7, of: [1, 2]}}", `{"error":{"of":[1,2],"code":7}}`, true},
		{"{error: {code: 7, of: [1, 2]}}", `{"error":{"of":[2,1],"code":7}}`, false},
		{"{error: {code: 7}}", `{"error":{"code":7,"more":1}}`, false},
		{"{done: true}", `{"done":true}`, true},
		{"{done: true}", `{"done":1}`, false},
		{"{code: 3}", `{"code":null}`, false},
		{"{code: 3}", `{"code":3} {}`, false},
		{"{code: 3}", `{"code":4,"code":3}`, false},
	} {
		s := serviceAt(t, "http://h", fmt.Sprintf("  reset: {path: /}\n  buy: {path: /, sold-out: {json: %s}}", c.declared))
		if is := s.service.Buy.SoldOut.matches(409, []byte(c.body)); is != c.is {
			t.Errorf("%s declares %s: %v; want %v", c.declared, c.body, is, c.is)
		}
	}
}

// TestAnswersThatCannotBeMeant checks that a declared answer is refused, with its key, if it matches everything, nothing,
// or the same answers as another.
func TestAnswersThatCannotBeMeant(t *testing.T) {
	for buy, want := range map[string]string{
		"ok: {}":                         "http.buy.ok: want status, json or both",
		"sold-out: {}":                   "http.buy.sold-out: want status, json or both",
		"repeated: {}":                   "http.buy.repeated: want status, json or both",
		"stale: {json: {}}":              "http.buy.stale: want status, json or both",
		"sold-out: {status: []}":         "http.buy.sold-out.status: want a status, such as 409",
		"ok: {status: [], json: {a: 1}}": "http.buy.ok.status: want a status",
		"ok: {status: [0]}":              "http.buy.ok.status 0: want 200 to 599",
		"ok: {status: [201, -1]}":        "http.buy.ok.status -1: want 200 to 599",
		"ok: {status: [101]}":            "http.buy.ok.status 101",
		"ok: {status: [600]}":            "http.buy.ok.status 600",
		"ok: {status: [201]}, repeated: {status: [201]}":                    "http.buy: ok and repeated mean the same answer with status 201",
		"ok: {status: [200, 201], json: {a: 1}}, sold-out: {status: [201]}": "http.buy: ok and sold-out mean the same answer with status 201",
		"sold-out: {status: [409]}, stale: {status: [409]}":                 "http.buy: stale and sold-out mean the same answer with status 409",
		"sold-out: {json: {a: 1}}, stale: {json: {a: 1}}":                   "http.buy: stale and sold-out mean the same answer",
		"method: CONNECT": `http.buy.method "CONNECT": want one of`,
		"method: 'GE T'":  `http.buy.method "GE T": want one of`,
		"ok: {status: [200]}, sold-out: {status: [200], json: {a: 1}}":                                       "",
		"ok: {status: [200], json: {a: 0}}, sold-out: {status: [200], json: {a: 1}}, stale: {status: [412]}": "",
		"repeated: {status: [200]}": "", // then ok means the others of 200, 201, 204
		"sold-out: {json: {a: 1}}":  "",
	} {
		_, err := read(t, "name: x\nobject: sale\nhttp: {base: http://h, reset: {path: /}, buy: {path: '/{order}', "+buy+"}}")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want %q", buy, err, want)
		}
	}
}

// TestStartOfAService checks that the time in which a service starts is not limited by that of its answers.
func TestStartOfAService(t *testing.T) {
	python := servertest.Python(t)
	port := freePort(t)
	program := fmt.Sprintf("import http.server; http.server.ThreadingHTTPServer(('127.0.0.1',%d),http.server.BaseHTTPRequestHandler).serve_forever()", port)
	s, err := read(t, fmt.Sprintf("name: shop\nobject: sale\nlimit: 1ms\npromises: [no-oversell]\nhttp:\n  base: http://127.0.0.1:%d\n  start: [%s, -c, %q]\n  reset: {path: /}\n  buy: {path: /}", port, python, program))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), world(t)()); err != nil {
		t.Error(err) // no service starts within 1 ms
	}
}

// TestAServiceThatEnds checks that a service that has ended is not started again within a run: a new process would not
// have the stock that was on sale.
func TestAServiceThatEnds(t *testing.T) {
	python := servertest.Python(t)
	port := freePort(t)
	program := fmt.Sprintf("import http.server,os\nclass H(http.server.BaseHTTPRequestHandler):\n  protocol_version='HTTP/1.1'\n  def do_POST(self):\n    if self.path=='/buy': os._exit(3)\n    self.send_response(204);self.end_headers()\nhttp.server.ThreadingHTTPServer(('127.0.0.1',%d),H).serve_forever()", port)
	s := serviceAt(t, fmt.Sprintf("http://127.0.0.1:%d", port), fmt.Sprintf("  start: [%s, -c, %q]\n  reset: {path: /reset}\n  buy: {path: /buy}", python, program))
	sale := s.Sale().New(world(t)(), "phone")
	if err := sale.Open(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	if _, err := sale.Buy(t.Context(), stockimpl.Order{ID: 1, Quantity: 1}, lockimpl.Lock{}); err == nil {
		t.Error("a service that has ended has sold")
	}
	ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	for s.Err() == nil && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "it ended with exit status 3") {
		t.Errorf("the system reports no failure: %v", err)
	}
	if err := sale.Open(t.Context(), 5); err == nil || !strings.Contains(err.Error(), "it ended with exit status 3") {
		t.Errorf("opened at a service that has ended: %v", err)
	}
	s.Begin()
	if err := s.Sale().New(world(t)(), "phone").Open(t.Context(), 5); err != nil || s.Err() != nil {
		t.Errorf("another run: %v", err)
	}
}

// TestAnswersWithoutAnEnd checks that an answer whose body does not end, or is too long to read, leaves the outcome of an
// order unknown, within the time limit.
func TestAnswersWithoutAnEnd(t *testing.T) {
	held := make(chan struct{})
	for _, c := range []struct {
		answer func(http.ResponseWriter, *http.Request)
		want   string
	}{
		{func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			<-held
			conn.Close()
		}, "does not declare: 101 Switching Protocols"},
		{func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"a":`)
			w.(http.Flusher).Flush()
			<-held
		}, "no answer to buy within 300ms"},
		{func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, longestBody+1)) // fails if the client is gone
		}, "the answer is longer than the maximum of 16 MiB"},
		{func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, longestBody))
		}, ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(c.answer))
		s := serviceAt(t, server.URL, "  reset: {path: /}\n  buy: {path: /}")
		s.limit = 5 * time.Second
		if strings.Contains(c.want, "300ms") {
			s.limit = 300 * time.Millisecond
		}
		_, err := s.Sale().New(world(t)(), "phone").Buy(t.Context(), stockimpl.Order{ID: 1, Quantity: 1}, lockimpl.Lock{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v; want %q", err, c.want)
		}
		t.Cleanup(server.Close)
	}
	close(held)
}

// TestRequestsThatCannotBeMeant checks that a file is refused if a placeholder is at a place where it is not filled in,
// if orders cannot be told apart, or if a header or a path cannot be sent.
func TestRequestsThatCannotBeMeant(t *testing.T) {
	for _, c := range []struct{ promises, http, want string }{
		{"", "buy: {path: /b}, reset: {path: /}", "http.buy: no {order} stands in the path, the body or the headers"},
		{"[no-oversell]", "buy: {path: /b}, reset: {path: /}", ""},
		{"", "buy: {path: /b, headers: {Idempotency-Key: '{order}'}}, reset: {path: /}", ""},
		{"[no-oversell]", "buy: {path: /b, repeated: {status: [200]}}, reset: {path: /}", "http.buy.repeated: the service cannot tell one order from another"},
		{"", "buy: {path: '/{order'}, reset: {path: /}", ": http.buy: the placeholder {order in \"/{order\" has no }"},
		{"", "buy: {path: '/{order}', body: '{\"at\": \"{redis}\"}'}, reset: {path: /}", "http.buy: the placeholder {redis} in"},
		{"", "buy: {path: '/{order}/{port}'}, reset: {path: /}", "is not valid there: want {order}, {quantity}, {product} or {client}"},
		{"", "buy: {path: '/{order}/{stock}'}, reset: {path: /}", "is not valid there: want {order}"},
		{"", "buy: {path: '/{order}'}, reset: {path: '/{order}'}", "http.reset: the placeholder {order} in \"/{order}\" is not valid there: want {stock}, {product} or {client}"},
		{"", "buy: {path: '/{ordr}'}, reset: {path: /}", "did you mean {order}?"},
		{"", "buy: {path: '/{order}'}, reset: {path: /}, orders: {path: /, result: '[.id'}", `http.orders.result "[.id": want names joined by dots`},
		{"", "buy: {path: '/{order}'}, reset: {path: /}, orders: {path: /, result: 'all[].id', quantity: '[0].n'}", `http.orders.quantity "[0].n": want names joined by dots`},
		{"", "buy: {path: '/{order}/%zz'}, reset: {path: /}", "want a path as a URL has it"},
		{"", "buy: {path: '/{order}', headers: {'A b': c}}, reset: {path: /}", `http.buy.headers: the name "A b"`},
		{"", "buy: {path: '/{order}', headers: {'': c}}, reset: {path: /}", `http.buy.headers: the name ""`},
		{"", "buy: {path: '/{order}', headers: {A: \"b\\nc\"}}, reset: {path: /}", "http.buy.headers.A"},
		{"", "buy: {path: '/{order}', headers: {host: a, Host: b}}, reset: {path: /}", "Host and host are the same header"},
		{"", "buy: {path: '/{order}', headers: {Host: a b}}, reset: {path: /}", "want a host"},
		{"", "buy: {path: '/{order}', headers: {content-length: '3'}}, reset: {path: /}", "leave out content-length"},
		{"", "start: [a, '{order}'], buy: {path: '/{order}'}, reset: {path: /}", `http.start: the placeholder {order} in "{order}" is not valid there: want {redis} or {port}`},
	} {
		promises := ""
		if c.promises != "" {
			promises = "\npromises: " + c.promises
		}
		_, err := read(t, "name: x\nobject: sale"+promises+"\nhttp: {base: http://h, "+c.http+"}")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", c.http, err, c.want)
		}
	}
	if _, err := read(t, "name: x\nobject: sale\nenv: {A: b}\nhttp: {base: http://h, buy: {path: '/{order}'}, reset: {path: /}}"); err == nil || !strings.Contains(err.Error(), "there is no start") {
		t.Errorf("env without start: %v", err)
	}
}

// TestHostHeaders checks that requests have the Host header that the file names.
func TestHostHeaders(t *testing.T) {
	var host atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { host.Store(r.Host) }))
	defer server.Close()
	s := serviceAt(t, server.URL, "  reset: {path: /, headers: {host: 'shop.example:8080'}}\n  buy: {path: /}")
	if err := s.Sale().New(world(t)(), "phone").Open(t.Context(), 5); err != nil || host.Load() != "shop.example:8080" {
		t.Errorf("%v, %v", host.Load(), err)
	}
}

// TestLoadsThatDoNotFit checks that a load is refused if it needs requests that the service's file does not declare.
func TestLoadsThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		more     string
		refunds  bool
		quantity int
		want     string
	}{
		{"buy: {path: /}", false, 1, ""},
		{"buy: {path: /}", true, 1, "has no http.refund"},
		{"buy: {path: /}", false, 2, "http.buy has no {quantity}"},
		{"buy: {path: '/{quantity}'}", false, 2, ""},
		{"buy: {path: '/{quantity}'}\n  orders: {path: /, result: '[].id'}", false, 2, "has no http.orders.quantity"},
		{"buy: {path: '/{quantity}'}\n  orders: {path: /, result: '[].id', quantity: '[].n'}", false, 2, ""},
		{"buy: {path: '/{quantity}'}\n  refund: {path: /}", true, 2, "http.refund has no {quantity}"},
		{"buy: {path: '/{quantity}'}\n  refund: {path: /}", true, 1, ""},
	} {
		err := serviceAt(t, "http://h", "  reset: {path: /}\n  "+c.more).Fits(c.refunds, c.quantity)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %v, %d: %v; want %q", c.more, c.refunds, c.quantity, err, c.want)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := freeport.One()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestCountsInOtherSpellings checks that a count of a service is read as a number of JSON, not by its spelling.
func TestCountsInOtherSpellings(t *testing.T) {
	for text, want := range map[string]int64{"0.0": 0, "-0": 0, "1e1": 10, "10.00": 10, "1E+2": 100, "9007199254740993.0": 9007199254740993} {
		ns, err := numbersAt([]byte(`{"of":[{"left":`+text+`}]}`), "of[].left")
		if err != nil || len(ns) != 1 || ns[0] != want {
			t.Errorf("%s: %v, %v; want %d", text, ns, err, want)
		}
	}
	for _, text := range []string{"0.5", "1e-1", "1e400", "1e99999999999999999999", "9223372036854775808"} {
		if ns, err := numbersAt([]byte(`{"left":`+text+`}`), "left"); err == nil || !strings.Contains(err.Error(), text+" at left is not a whole number") {
			t.Errorf("%s: %v, %v; want an error", text, ns, err)
		}
	}
}
