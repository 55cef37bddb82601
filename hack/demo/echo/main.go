// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command echo is the application of the demo and of the end-to-end tests: HTTP/1.1, HTTP/2 without TLS and gRPC on one
// port. It knows nothing of Headgate.
//
//	GET /            the pod's name; with ?tokens=10 also X-Tokens-Used: 10, as a language model's gateway would tell
//	GET /burn?ms=5   the same, after that much work of the CPU
//	GET /slow?ms=500 the same, after that long
//	GET /from        the address that the app takes the client for
//	GET /deaf?ms=500 stops listening for that long
//	GET /tunnel      with an Upgrade: sends back whatever comes, for as long as the client wants
//	grpc.health.v1.Health/Check and Watch
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	addr := flag.String("addr", ":8080", "address to serve")
	delay := flag.Duration("delay", 0, "how long /healthz says that the app is not ready")
	linger := flag.Duration("linger", 0, "how long to go on serving after SIGTERM")
	manners := flag.String("sigterm", "finish", "what SIGTERM does: finish (what is in flight), exit (at once), ignore")
	lifetime := flag.Duration("lifetime", 0, "how long to run, as a job does; 0 = until told to end")
	flag.Parse()
	ctx, stop := signals(*manners)
	defer stop()
	if *lifetime > 0 {
		time.AfterFunc(*lifetime, stop)
	}

	ear := &ear{address: *addr}
	server := &http.Server{Handler: handler(*delay, ear), ReadHeaderTimeout: 10 * time.Second, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		<-ctx.Done()
		time.Sleep(*linger)
		end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Shutdown(end); err != nil {
			log.Print(err)
		}
		ear.close()
	}()
	log.Printf("serving on %s", *addr)
	if err := ear.serve(server); err != nil {
		return err
	}
	<-finished
	return nil
}

// signals returns a context that ends when the app shall.
func signals(manners string) (context.Context, context.CancelFunc) {
	switch manners {
	case "exit":
		return context.WithCancel(context.Background()) // the runtime ends the process
	case "ignore":
		signal.Ignore(syscall.SIGTERM)
		return signal.NotifyContext(context.Background(), syscall.SIGINT)
	}
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}

func handler(delay time.Duration, ear *ear) http.Handler {
	host, _ := os.Hostname()
	start := time.Now()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if tokens := r.URL.Query().Get("tokens"); tokens != "" {
			w.Header().Set("X-Tokens-Used", tokens)
		}
		fmt.Fprintln(w, host)
	})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if time.Since(start) < delay {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("/burn", func(w http.ResponseWriter, r *http.Request) {
		for end := time.Now().Add(milliseconds(r)); time.Now().Before(end); {
			continue
		}
		fmt.Fprintln(w, host)
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(milliseconds(r)):
		case <-r.Context().Done():
		}
		fmt.Fprintln(w, host)
	})
	mux.HandleFunc("/from", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.RemoteAddr, r.Header["X-Forwarded-For"])
	})
	mux.HandleFunc("/tunnel", tunnel)
	mux.HandleFunc("/deaf", func(w http.ResponseWriter, r *http.Request) {
		ear.deafen(milliseconds(r))
		fmt.Fprintln(w, host)
	})
	rpc := grpc.NewServer()
	healthv1.RegisterHealthServer(rpc, health.NewServer())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			rpc.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// tunnel is what a WebSocket is to a proxy: a connection that two sides have agreed to use in another way.
func tunnel(w http.ResponseWriter, r *http.Request) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil || r.Header.Get("Upgrade") == "" {
		http.Error(w, "not an upgrade", http.StatusBadRequest)
		return
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"); err == nil {
		_, _ = io.Copy(conn, buffered)
	}
}

// milliseconds reads ?ms=, at most ten seconds.
func milliseconds(r *http.Request) time.Duration {
	n, err := strconv.Atoi(r.URL.Query().Get("ms"))
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n)*time.Millisecond, 10*time.Second)
}
