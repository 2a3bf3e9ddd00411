package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/sr"
)

// schema is a text of the question that refers to items, which are registered first.
func schema(ctx context.Context, client *sr.Client, q Question, text string) sr.Schema {
	item := got(client.CreateSchema(ctx, q.Reference, sr.Schema{Schema: q.Item, Type: q.Type}))
	reference := sr.SchemaReference{Name: q.Reference, Subject: q.Reference, Version: item.Version}
	return sr.Schema{Schema: text, Type: q.Type, References: []sr.SchemaReference{reference}}
}

// refusal is the number by which a call was refused.
func refusal(err error) any {
	var refused *sr.ResponseError
	if !errors.As(err, &refused) {
		return "it was not refused"
	}
	return refused.ErrorCode
}

func register(ctx context.Context, client *sr.Client, q Question) any {
	order, more, other := schema(ctx, client, q, q.Order), schema(ctx, client, q, q.More), schema(ctx, client, q, q.Other)
	first, second := got(client.CreateSchema(ctx, q.Subject, order)), got(client.CreateSchema(ctx, q.Subject, more))
	_, refused := client.CreateSchema(ctx, q.Subject, other)
	_, invalid := client.CreateSchema(ctx, q.Subject, schema(ctx, client, q, "{"))
	var fits []bool
	for _, each := range []sr.Schema{more, other} {
		fits = append(fits, got(client.CheckCompatibility(ctx, q.Subject, -1, each)).Is)
	}
	must(client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, q.Subject)[0].Err)
	level := client.Compatibility(ctx, q.Subject)[0]
	must(level.Err)
	return map[string]any{
		"ids":      []int{first.ID, second.ID},
		"refused":  refusal(refused),
		"invalid":  refusal(invalid),
		"fits":     fits,
		"found":    got(client.LookupSchema(ctx, q.Subject, order)).ID,
		"version":  got(client.LookupSchema(ctx, q.Subject, more)).Version,
		"latest":   got(client.SchemaByVersion(ctx, q.Subject, -1)).ID,
		"versions": got(client.SubjectVersions(ctx, q.Subject)),
		"text":     got(client.SchemaTextByID(ctx, first.ID)),
		"level":    level.Level,
	}
}

func remove(ctx context.Context, client *sr.Client, q Question) any {
	must(client.DeleteSchema(ctx, q.Subject, 1, sr.SoftDelete))
	rest := got(client.DeleteSubject(ctx, q.Subject, sr.SoftDelete))
	_, gone := client.SubjectVersions(ctx, q.Subject)
	erased := got(client.DeleteSubject(ctx, q.Subject, sr.HardDelete))
	return map[string]any{"first": 1, "rest": rest, "gone": refusal(gone), "erased": erased}
}
