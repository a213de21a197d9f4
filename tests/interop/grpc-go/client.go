package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// graceAfter is how long streams may take to end after data stopped flowing.
const graceAfter = 60 * time.Second

// plan says what runs at once, and for how long.
type plan struct {
	time        time.Duration
	connections int
	streams     int
	callers     int
}

// result is what became of it; every failure is one broken stream or call.
type result struct {
	Streams   int      `json:"streams"`
	Calls     int      `json:"calls"`
	Megabytes int      `json:"megabytes"`
	Failures  []string `json:"failures"`
	lock      sync.Mutex
}

// kind is one way to move data over a connection until the time is up; it returns how many streams or calls and pieces it took.
type kind struct {
	name string
	run  func(context.Context, *grpc.ClientConn, time.Duration) (calls, pieces int, err error)
}

func (plan plan) run(ctx context.Context, target, authority string) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, plan.time+graceAfter)
	defer cancel()
	found := &result{Failures: []string{}}
	var running sync.WaitGroup
	for number := 0; number < plan.connections; number++ {
		connection, err := dial(target, authority)
		if err != nil {
			return nil, err
		}
		defer connection.Close()
		for _, streaming := range []kind{{"download", receive}, {"upload", send}, {"both ways", exchange}} {
			for stream := 0; stream < plan.streams; stream++ {
				found.start(ctx, &running, connection, streaming, plan.time)
			}
		}
		for caller := 0; caller < plan.callers; caller++ {
			found.start(ctx, &running, connection, kind{"unary", call}, plan.time)
		}
	}
	running.Wait()
	return found, nil
}

func dial(target, authority string) (*grpc.ClientConn, error) {
	return grpc.Dial(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority(authority),
		// What breaks is counted, not repeated.
		grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{}), grpc.WaitForReady(true)),
	)
}

// start runs one kind beside everything else.
func (found *result) start(ctx context.Context, running *sync.WaitGroup, connection *grpc.ClientConn, kind kind, duration time.Duration) {
	running.Add(1)
	go func() {
		defer running.Done()
		calls, pieces, err := kind.run(ctx, connection, duration)
		found.lock.Lock()
		defer found.lock.Unlock()
		if kind.name == "unary" {
			found.Calls += calls
		} else {
			found.Streams += calls
			found.Megabytes += pieces * pieceBytes / 1_000_000
		}
		if err != nil {
			found.Failures = append(found.Failures, fmt.Sprintf("%s, after %d calls and %d pieces: %v", kind.name, calls, pieces, err))
		}
	}()
}

// receive takes what the server sends until it says how much that was.
func receive(ctx context.Context, connection *grpc.ClientConn, duration time.Duration) (int, int, error) {
	stream, err := connection.NewStream(ctx, &download, downloadPath)
	if err != nil {
		return 0, 0, err
	}
	request := []byte(duration.String())
	if err := stream.SendMsg(&request); err != nil {
		return 0, 0, err
	}
	if err := stream.CloseSend(); err != nil {
		return 0, 0, err
	}
	received := 0
	var piece []byte
	for {
		if err := stream.RecvMsg(&piece); err != nil {
			return 0, received, err
		}
		if len(piece) != pieceBytes {
			break
		}
		received++
	}
	if err := agrees(piece, received); err != nil {
		return 0, received, err
	}
	return ended(stream, received)
}

// send sends until the time is up; the server says how much came.
func send(ctx context.Context, connection *grpc.ClientConn, duration time.Duration) (int, int, error) {
	stream, err := connection.NewStream(ctx, &upload, uploadPath)
	if err != nil {
		return 0, 0, err
	}
	piece := make([]byte, pieceBytes)
	sent := 0
	for end := time.Now().Add(duration); time.Now().Before(end); sent++ {
		if err := stream.SendMsg(&piece); err != nil {
			return 0, sent, reason(stream, err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		return 0, sent, err
	}
	var count []byte
	if err := stream.RecvMsg(&count); err != nil {
		return 0, sent, err
	}
	if err := agrees(count, sent); err != nil {
		return 0, sent, err
	}
	return ended(stream, sent)
}

// exchange sends and receives at once, and compares every piece that comes back.
func exchange(ctx context.Context, connection *grpc.ClientConn, duration time.Duration) (int, int, error) {
	stream, err := connection.NewStream(ctx, &bothWays, bothWaysPath)
	if err != nil {
		return 0, 0, err
	}
	sent := make(chan int, 1)
	go func() {
		count := 0
		for end := time.Now().Add(duration); time.Now().Before(end); count++ {
			piece := numbered(count)
			// Why it failed is told to whoever receives.
			if stream.SendMsg(&piece) != nil {
				break
			}
		}
		sent <- count
		_ = stream.CloseSend()
	}()
	received := 0
	err = eachReceived(stream, func(piece []byte) error {
		if !bytes.Equal(piece, numbered(received)) {
			return fmt.Errorf("piece %d came back changed", received)
		}
		received++
		return nil
	})
	if err != nil {
		return 0, received, err
	}
	if count := <-sent; count != received {
		return 0, received, fmt.Errorf("of %d pieces %d came back", count, received)
	}
	return 1, received, nil
}

// eachReceived hands on every piece that comes back, until the stream has ended well or one is refused.
func eachReceived(stream grpc.ClientStream, take func(piece []byte) error) error {
	var piece []byte
	for {
		err := stream.RecvMsg(&piece)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := take(piece); err != nil {
			return err
		}
	}
}

// call sends one small request after another.
func call(ctx context.Context, connection *grpc.ClientConn, duration time.Duration) (int, int, error) {
	calls := 0
	for end := time.Now().Add(duration); time.Now().Before(end); calls++ {
		request := []byte(strconv.Itoa(calls))
		var reply []byte
		if err := connection.Invoke(ctx, unaryMethod, &request, &reply); err != nil {
			return calls, 0, err
		}
		if !bytes.Equal(request, reply) {
			return calls, 0, fmt.Errorf("%q came back as %q", request, reply)
		}
	}
	return calls, 0, nil
}

// numbered is a piece that no other is mistaken for.
func numbered(number int) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("%08d", number)), pieceBytes/8)
}

func agrees(count []byte, pieces int) error {
	if string(count) != strconv.Itoa(pieces) {
		return fmt.Errorf("the server counted %q pieces, the client %d", count, pieces)
	}
	return nil
}

// ended makes sure that a stream ends well and with nothing left.
func ended(stream grpc.ClientStream, pieces int) (int, int, error) {
	var nothing []byte
	if err := stream.RecvMsg(&nothing); !errors.Is(err, io.EOF) {
		return 0, pieces, fmt.Errorf("the stream did not end well: %w", err)
	}
	return 1, pieces, nil
}

// reason is why sending failed, which only receiving tells.
func reason(stream grpc.ClientStream, sending error) error {
	if !errors.Is(sending, io.EOF) {
		return sending
	}
	var nothing []byte
	return stream.RecvMsg(&nothing)
}
