package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// echoPath is where the suites' app sends every message back as it comes. It is no gRPC server, and its answers are those of one.
const echoPath = "/stream"

// turns is how often one end waits for the other while both may speak.
const turns = 20

var echoed = grpc.StreamDesc{StreamName: "stream", ServerStreams: true, ClientStreams: true}

// check does what clients of every maker do before that app, and says a word for each thing that was right; tests/tests/peers/clients.rs
// says what they mean.
func check(ctx context.Context, port, authority string, size int) error {
	connection, err := dial("127.0.0.1:"+port, authority)
	if err != nil {
		return err
	}
	defer connection.Close()
	trailer, err := returned(ctx, connection, size)
	if err != nil {
		return err
	}
	fmt.Println("body")
	if got := trailer.Get("x-echoed"); len(got) != 1 || got[0] != "7" {
		return fmt.Errorf("the trailers are %v", trailer)
	}
	fmt.Println("trailers")
	if err := inTurns(ctx, connection); err != nil {
		return err
	}
	fmt.Println("duplex")
	if err := cancelled(ctx, connection); err != nil {
		return err
	}
	fmt.Println("cancel")
	return nil
}

// returned sends so many bytes, compares what comes back meanwhile, and returns the trailers.
func returned(ctx context.Context, connection *grpc.ClientConn, size int) (metadata.MD, error) {
	// A client of gRPC sends no trailers. What it asks for in this header, the app says in its own.
	ctx = metadata.AppendToOutgoingContext(ctx, "x-sent", "7")
	stream, err := connection.NewStream(ctx, &echoed, echoPath)
	if err != nil {
		return nil, err
	}
	go func() {
		for at := 0; at < size; at += pieceBytes {
			length := pieceBytes
			if size-at < length {
				length = size - at
			}
			piece := pattern(at, length)
			// Why it failed is told to whoever receives.
			if stream.SendMsg(&piece) != nil {
				break
			}
		}
		_ = stream.CloseSend()
	}()
	received := 0
	err = eachReceived(stream, func(piece []byte) error {
		if !bytes.Equal(piece, pattern(received, len(piece))) {
			return fmt.Errorf("byte %d or one behind it is another", received)
		}
		received += len(piece)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if received != size {
		return nil, fmt.Errorf("%d bytes came back", received)
	}
	return stream.Trailer(), nil
}

// inTurns sends nothing more before what it has sent is back.
func inTurns(ctx context.Context, connection *grpc.ClientConn) error {
	stream, err := connection.NewStream(ctx, &echoed, echoPath)
	if err != nil {
		return err
	}
	for turn := 0; turn < turns; turn++ {
		if err := oneTurn(stream, pattern(turn, 100)); err != nil {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	_, _, err = ended(stream, turns)
	return err
}

func oneTurn(stream grpc.ClientStream, piece []byte) error {
	if err := stream.SendMsg(&piece); err != nil {
		return err
	}
	var back []byte
	if err := stream.RecvMsg(&back); err != nil {
		return err
	}
	if !bytes.Equal(back, piece) {
		return fmt.Errorf("%q came back as %q", piece, back)
	}
	return nil
}

// cancelled leaves a stream in its middle: sooner or later the next one is alone at the app.
func cancelled(ctx context.Context, connection *grpc.ClientConn) error {
	leaving, leave := context.WithCancel(ctx)
	defer leave()
	stream, err := connection.NewStream(leaving, &echoed, echoPath)
	if err != nil {
		return err
	}
	if err := oneTurn(stream, pattern(0, pieceBytes)); err != nil {
		return err
	}
	if err := untilInFlight(ctx, connection, "2"); err != nil {
		return err
	}
	leave()
	var nothing []byte
	if err := stream.RecvMsg(&nothing); status.Code(err) != codes.Canceled {
		return fmt.Errorf("a stream that was left ends with %w", err)
	}
	return untilInFlight(ctx, connection, "1")
}

func untilInFlight(ctx context.Context, connection *grpc.ClientConn, wanted string) error {
	for {
		number, err := inFlight(ctx, connection)
		if err != nil || number == wanted {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// inFlight is how many requests the app holds, this one included.
func inFlight(ctx context.Context, connection *grpc.ClientConn) (string, error) {
	stream, err := connection.NewStream(ctx, &echoed, echoPath)
	if err != nil {
		return "", err
	}
	if err := oneTurn(stream, pattern(0, 5)); err != nil {
		return "", err
	}
	if err := stream.CloseSend(); err != nil {
		return "", err
	}
	if _, _, err := ended(stream, 1); err != nil {
		return "", err
	}
	header, err := stream.Header()
	if err != nil {
		return "", err
	}
	numbers := header.Get("x-in-flight")
	if len(numbers) != 1 {
		return "", fmt.Errorf("the headers are %v", header)
	}
	return numbers[0], nil
}

// pattern is a part of every body: no piece of it looks like another.
func pattern(at, length int) []byte {
	piece := make([]byte, length)
	for index := range piece {
		piece[index] = byte((at + index) ^ (at+index)>>8)
	}
	return piece
}
