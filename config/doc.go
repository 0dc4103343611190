// Package config reads dormouse.yaml, the file that describes what Dormouse makes on a broker and how messages are tried
// again: the delay ladder, exchanges, work queues with their retry policies, fixed delays. Programs in Go and the command line
// read the same file:
//
//	file, err := config.Load("dormouse.yaml")
//	if err != nil {
//		return err
//	}
//	client, err := dormouse.Connect(ctx, url, file.Options)
//	if err != nil {
//		return err
//	}
//	err = client.Declare(ctx, file.Topology)
//	if err != nil {
//		return err
//	}
//	consumer, err := client.Consume(ctx, "email", handle, file.Consumers["email"])
//
// Keys that do not exist and values that cannot be are errors which name the line and the column.
package config
