// A collector of traces that reads them with OpenTelemetry's own messages, and prints each span as a line of JSON, the way that the suites see it.
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

type span struct {
	Program    map[string]any `json:"program"`
	Trace      string         `json:"trace"`
	Span       string         `json:"span"`
	Parent     string         `json:"parent"`
	Name       string         `json:"name"`
	TraceState string         `json:"trace_state"`
	Began      uint64         `json:"began"`
	Ended      uint64         `json:"ended"`
	Attributes map[string]any `json:"attributes"`
	Events     []string       `json:"events"`
	IsError    bool           `json:"is_error"`
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("{\"port\": %d}\n", listener.Addr().(*net.TCPAddr).Port)
	var printing sync.Mutex
	out := json.NewEncoder(os.Stdout)
	http.HandleFunc("/v1/traces", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		// The request of the export service, as its documentation says: the same fields on the wire.
		var batch trace.TracesData
		if err := proto.Unmarshal(body, &batch); err != nil {
			log.Fatalf("not a batch: %v", err)
		}
		refuseUnknown(batch.ProtoReflect())
		if r.Header.Get("Content-Type") != "application/x-protobuf" {
			log.Fatalf("content type %q", r.Header.Get("Content-Type"))
		}
		printing.Lock()
		defer printing.Unlock()
		for _, resource := range batch.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					if s.Kind != trace.Span_SPAN_KIND_SERVER || len(s.TraceId) != 16 || len(s.SpanId) != 8 {
						log.Fatalf("not a span of a server: %v", s)
					}
					if err := out.Encode(seen(resource.Resource.Attributes, s)); err != nil {
						log.Fatal(err)
					}
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	})
	log.Fatal(http.Serve(listener, nil))
}

// Fields that the field's own messages do not have would be lost without a word.
func refuseUnknown(message protoreflect.Message) {
	if len(message.GetUnknown()) > 0 {
		log.Fatalf("unknown fields in %s: %x", message.Descriptor().FullName(), message.GetUnknown())
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := 0; i < value.List().Len(); i++ {
				refuseUnknown(value.List().Get(i).Message())
			}
		default:
			refuseUnknown(value.Message())
		}
		return true
	})
}

func seen(program []*common.KeyValue, s *trace.Span) span {
	events := []string{}
	for _, event := range s.Events {
		if event.TimeUnixNano < s.StartTimeUnixNano || event.TimeUnixNano > s.EndTimeUnixNano {
			log.Fatalf("an event outside of its span: %v", s)
		}
		events = append(events, event.Name)
	}
	return span{
		Program:    values(program),
		Trace:      hex.EncodeToString(s.TraceId),
		Span:       hex.EncodeToString(s.SpanId),
		Parent:     hex.EncodeToString(s.ParentSpanId),
		Name:       s.Name,
		TraceState: s.TraceState,
		Began:      s.StartTimeUnixNano,
		Ended:      s.EndTimeUnixNano,
		Attributes: values(s.Attributes),
		Events:     events,
		IsError:    s.Status.GetCode() == trace.Status_STATUS_CODE_ERROR,
	}
}

func values(attributes []*common.KeyValue) map[string]any {
	all := map[string]any{}
	for _, attribute := range attributes {
		switch value := attribute.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			all[attribute.Key] = value.StringValue
		case *common.AnyValue_BoolValue:
			all[attribute.Key] = value.BoolValue
		case *common.AnyValue_IntValue:
			all[attribute.Key] = value.IntValue
		case *common.AnyValue_DoubleValue:
			all[attribute.Key] = value.DoubleValue
		default:
			log.Fatalf("a value of another kind: %v", attribute)
		}
	}
	return all
}
