package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

const patience = 30 * time.Second

func write(ctx context.Context, client *sr.Client, q Question) any {
	order := got(client.CreateSchema(ctx, q.Subject, schema(ctx, client, q, q.Order)))
	encode, index := encoder(q)
	kafka := got(kgo.NewClient(kgo.SeedBrokers(q.Bootstrap)))
	defer kafka.Close()
	var serde sr.Serde
	serde.Register(order.ID, json.RawMessage{}, sr.EncodeFn(encode), sr.Index(index...))
	for _, value := range q.Values {
		record := &kgo.Record{Topic: q.Topic, Value: got(serde.Encode(value))}
		must(kafka.ProduceSync(ctx, record).FirstErr())
	}
	return len(q.Values)
}

func read(ctx context.Context, client *sr.Client, q Question) any {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	start := kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())
	kafka := got(kgo.NewClient(kgo.SeedBrokers(q.Bootstrap), kgo.ConsumeTopics(q.Topic), start))
	defer kafka.Close()
	var values []any
	for len(values) < q.Count {
		fetched := kafka.PollFetches(ctx)
		must(fetched.Err())
		for _, record := range fetched.Records() {
			values = append(values, decoded(ctx, client, q, record.Value))
		}
	}
	return values
}

// decoded is what a record holds, by the schema that it names.
func decoded(ctx context.Context, client *sr.Client, q Question, value []byte) any {
	var header sr.ConfluentHeader
	id, data, err := header.DecodeID(value)
	must(err)
	written := got(client.SchemaByID(ctx, id))
	if written.Type == sr.TypeProtobuf {
		index, message, err := header.DecodeIndex(data, 1)
		must(err)
		return fromProtobuf(q, index, message)
	}
	if written.Type == sr.TypeJSON {
		var found any
		must(json.Unmarshal(data, &found))
		return found
	}
	return fromAvro(ctx, client, written, data)
}
