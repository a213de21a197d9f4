package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	service      = "ebb.interop.Streams"
	unaryMethod  = "/" + service + "/Echo"
	downloadPath = "/" + service + "/Download"
	uploadPath   = "/" + service + "/Upload"
	bothWaysPath = "/" + service + "/BothWays"
)

var (
	download = grpc.StreamDesc{StreamName: "Download", ServerStreams: true, Handler: sendPieces}
	upload   = grpc.StreamDesc{StreamName: "Upload", ClientStreams: true, Handler: countPieces}
	bothWays = grpc.StreamDesc{StreamName: "BothWays", ServerStreams: true, ClientStreams: true, Handler: returnPieces}
)

// serve listens on the loopback and says where.
func serve(port string) error {
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	// Window sizes are left to the estimation: setting one turns it off.
	server := grpc.NewServer(grpc.ForceServerCodec(codec{}), grpc.MaxConcurrentStreams(1000))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: service,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Echo", Handler: echo}},
		Streams:     []grpc.StreamDesc{download, upload, bothWays},
	}, struct{}{})
	fmt.Printf("{\"port\":%d}\n", listener.Addr().(*net.TCPAddr).Port)
	return server.Serve(listener)
}

func echo(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	message := new([]byte)
	if err := decode(message); err != nil {
		return nil, err
	}
	return message, nil
}

// sendPieces sends for as long as the one request asks, then how many pieces it sent.
func sendPieces(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	duration, err := time.ParseDuration(string(request))
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	piece := make([]byte, pieceBytes)
	sent := 0
	for end := time.Now().Add(duration); time.Now().Before(end); sent++ {
		if err := stream.SendMsg(&piece); err != nil {
			return err
		}
	}
	count := []byte(strconv.Itoa(sent))
	return stream.SendMsg(&count)
}

// countPieces takes everything and says how many pieces came.
func countPieces(_ any, stream grpc.ServerStream) error {
	var piece []byte
	for received := 0; ; received++ {
		err := stream.RecvMsg(&piece)
		if errors.Is(err, io.EOF) {
			count := []byte(strconv.Itoa(received))
			return stream.SendMsg(&count)
		}
		if err != nil {
			return err
		}
	}
}

// returnPieces sends every piece back.
func returnPieces(_ any, stream grpc.ServerStream) error {
	var piece []byte
	for {
		err := stream.RecvMsg(&piece)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.SendMsg(&piece); err != nil {
			return err
		}
	}
}
