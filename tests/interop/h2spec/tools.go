//go:build tools

// Package h2spec pins the h2spec with which the proxies are checked.
package h2spec

import _ "github.com/summerwind/h2spec/cmd/h2spec"
