// Command shop is a small web shop that sells one product from a stock in Redis. It is an example of a system for
// oversell: see docs/systems.md and shop.yaml.
//
// With -flawed it reads the stock, decides, and writes it back, as many shops do; otherwise a script checks and
// decrements the stock atomically, once for each order.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// shop sells one product. A hash holds the orders, by id, with their pieces.
type shop struct {
	redis         *redis.Client
	stock, orders string // keys
	flawed        bool
}

// sell decrements the stock by an order's pieces and records the order, unless it is recorded already.
var sell = redis.NewScript(`
if redis.call('hexists', KEYS[2], ARGV[1]) == 1 then return 'repeated' end
if tonumber(redis.call('get', KEYS[1]) or '0') < tonumber(ARGV[2]) then return 'sold-out' end
redis.call('decrby', KEYS[1], ARGV[2])
redis.call('hset', KEYS[2], ARGV[1], ARGV[2])
return 'ok'`)

// order is a buyer's order.
type order struct {
	ID       string `json:"id"`
	Quantity int    `json:"quantity"`
}

func (s *shop) buy(ctx context.Context, o order) (string, error) {
	if !s.flawed {
		return sell.Run(ctx, s.redis, []string{s.stock, s.orders}, o.ID, o.Quantity).Text()
	}
	known, err := s.redis.HExists(ctx, s.orders, o.ID).Result()
	if err != nil || known {
		return "repeated", err
	}
	left, err := s.redis.Get(ctx, s.stock).Int()
	if err != nil {
		return "", err
	}
	if left < o.Quantity {
		return "sold-out", nil
	}
	if err := s.redis.Set(ctx, s.stock, left-o.Quantity, 0).Err(); err != nil {
		return "", err
	}
	return "ok", s.redis.HSet(ctx, s.orders, o.ID, o.Quantity).Err()
}

// statuses are the HTTP statuses of the results.
var statuses = map[string]int{"ok": http.StatusCreated, "repeated": http.StatusOK, "sold-out": http.StatusConflict}

func (s *shop) placeOrder(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.ID == "" || o.Quantity < 1 {
		http.Error(w, "an order has an id and a quantity of 1 or more", http.StatusBadRequest)
		return
	}
	said, err := s.buy(r.Context(), o)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, statuses[said], map[string]any{"id": o.ID, "code": said})
}

func (s *shop) showStock(w http.ResponseWriter, r *http.Request) {
	left, err := s.redis.Get(r.Context(), s.stock).Int()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, http.StatusOK, map[string]any{"left": left})
}

func (s *shop) listOrders(w http.ResponseWriter, r *http.Request) {
	all, err := s.redis.HGetAll(r.Context(), s.orders).Result()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	orders := []order{}
	for id, pieces := range all {
		n, err := strconv.Atoi(pieces)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		orders = append(orders, order{id, n})
	}
	answer(w, http.StatusOK, orders)
}

func (s *shop) reset(w http.ResponseWriter, r *http.Request) {
	var to struct{ Stock int }
	err := json.NewDecoder(r.Body).Decode(&to)
	if err == nil {
		err = errors.Join(s.redis.Del(r.Context(), s.orders).Err(), s.redis.Set(r.Context(), s.stock, to.Stock, 0).Err())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the buyer may be gone
}

func serve(listen, address string, flawed bool) error {
	options, err := redis.ParseURL(address)
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	options.MaxRetries = -1
	// The keys begin with a name unique to this process, and are removed at its end.
	prefix := "shop:" + strconv.Itoa(os.Getpid()) + ":"
	s := &shop{redis: redis.NewClient(options), stock: prefix + "stock", orders: prefix + "orders", flawed: flawed}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.placeOrder)
	mux.HandleFunc("GET /orders", s.listOrders)
	mux.HandleFunc("GET /stock", s.showStock)
	mux.HandleFunc("POST /admin/reset", s.reset)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.Background())
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return s.redis.Del(context.Background(), s.stock, s.orders).Err()
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve")
	flawed := flag.Bool("flawed", false, "read the stock and write it back, instead of one script")
	flag.Parse()
	if err := serve(*listen, strings.Split(os.Getenv("REDIS_URL"), ",")[0], *flawed); err != nil {
		log.Fatal(err)
	}
}
