module ebb.example/interop/otlp-collector

go 1.19

require (
	go.opentelemetry.io/proto/otlp v1.1.0
	google.golang.org/protobuf v1.33.0
)
