// Command grpc-go is a gRPC server and a client that move data as fast as they can, both ways at once, to show that a proxy between
// them breaks no stream. Both ends size their windows by the bandwidth that they measure, which grpc-go does by a ping for each round
// trip while data flows: more than a thousand a second on a fast link. As `check` it is one of the clients of every maker, with their arguments.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("write `grpc-go server`, `grpc-go client` or `grpc-go check`")
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	switch arguments[0] {
	case "server":
		port := flags.String("port", os.Getenv("PORT"), "where to listen on the loopback; 0 for any free port")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		return serve(*port)
	case "client":
		plan := plan{}
		target := flags.String("target", "", "host:port of the proxy")
		authority := flags.String("authority", "localhost", "what the requests are for")
		flags.DurationVar(&plan.time, "time", 10*time.Second, "how long data flows")
		flags.IntVar(&plan.connections, "connections", 2, "how many connections share the streams")
		flags.IntVar(&plan.streams, "streams", 4, "how many streams of each kind run at once on a connection")
		flags.IntVar(&plan.callers, "callers", 8, "how many callers send one small request after another on a connection")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		result, err := plan.run(context.Background(), *target, *authority)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(result)
	case "check":
		if len(arguments) != 5 {
			return fmt.Errorf("write `grpc-go check PORT HOST h2c BYTES`")
		}
		size, err := strconv.Atoi(arguments[4])
		if err != nil {
			return err
		}
		return check(context.Background(), arguments[1], arguments[2], size)
	default:
		return fmt.Errorf("%q is none of `server`, `client`, `check`", arguments[0])
	}
}
