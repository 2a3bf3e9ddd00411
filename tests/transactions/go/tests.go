// Package transactions names the modules whose own tests are compiled: go test -c github.com/twmb/franz-go/pkg/kgo
package transactions

import _ "github.com/twmb/franz-go/pkg/kgo"
