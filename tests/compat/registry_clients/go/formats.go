package main

import (
	"context"
	"encoding/json"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// encoder is how orders are written, from JSON, and which message of its file an order is.
func encoder(q Question) (func(any) ([]byte, error), []int) {
	switch q.Type {
	case sr.TypeProtobuf:
		order := orders(q).Messages().ByName("Order")
		return func(value any) ([]byte, error) {
			message := dynamicpb.NewMessage(order)
			must(protojson.Unmarshal(value.(json.RawMessage), message))
			return proto.Marshal(message)
		}, []int{order.Index()}
	case sr.TypeJSON:
		return json.Marshal, nil
	}
	known := &avro.SchemaCache{}
	got(avro.ParseWithCache(q.Item, "", known))
	order := got(avro.ParseWithCache(q.Order, "", known))
	return func(value any) ([]byte, error) {
		var made struct {
			ID    int64 `avro:"id"`
			Items []struct {
				Name string `avro:"name"`
			} `avro:"items"`
		}
		must(json.Unmarshal(value.(json.RawMessage), &made))
		return avro.Marshal(order, made)
	}, nil
}

// orders is the file that defines them.
func orders(q Question) protoreflect.FileDescriptor {
	var described descriptorpb.FileDescriptorSet
	must(proto.Unmarshal(q.Descriptors, &described))
	return got(got(protodesc.NewFiles(&described)).FindFileByPath("order.proto"))
}

func fromProtobuf(q Question, index []int, data []byte) any {
	message := dynamicpb.NewMessage(orders(q).Messages().Get(index[0]))
	must(proto.Unmarshal(data, message))
	return json.RawMessage(got(protojson.Marshal(message)))
}

// fromAvro knows nothing but what the registry tells of the schema and of those that it refers to.
func fromAvro(ctx context.Context, client *sr.Client, written sr.Schema, data []byte) any {
	known := &avro.SchemaCache{}
	for _, each := range written.References {
		item := got(client.SchemaByVersion(ctx, each.Subject, each.Version))
		got(avro.ParseWithCache(item.Schema.Schema, "", known))
	}
	var found map[string]any
	must(avro.Unmarshal(got(avro.ParseWithCache(written.Schema, "", known)), data, &found))
	return found
}
