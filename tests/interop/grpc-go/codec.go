package main

import "fmt"

// pieceBytes is how much one message carries: enough that the data, and not the messages, fill the link.
const pieceBytes = 32 * 1024

// codec passes bytes on as they are, so that no generated code is needed.
type codec struct{}

func (codec) Name() string { return "bytes" }

func (codec) Marshal(message any) ([]byte, error) {
	bytes, ok := message.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("messages are *[]byte, not %T", message)
	}
	// The transport sends it when it can, and the caller may use its buffer again.
	return append([]byte(nil), *bytes...), nil
}

func (codec) Unmarshal(data []byte, message any) error {
	bytes, ok := message.(*[]byte)
	if !ok {
		return fmt.Errorf("messages are *[]byte, not %T", message)
	}
	// The transport uses its buffer again.
	*bytes = append((*bytes)[:0], data...)
	return nil
}
