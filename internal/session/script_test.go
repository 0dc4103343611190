package session

import (
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dormousemq/dormouse/internal/wire"
)

// How far a peer is when a script begins.
type stage int

const (
	connected stage = iota
	started
	loggedIn
	opened // with channel 1
)

// script is what a client sends and what it must get.
type script struct {
	name string
	from stage
	play func(p *peer)
	want string // frames as peer.next gives them, one a line
	// rabbit is what RabbitMQ 4.3 does, where the broker deliberately does otherwise.
	rabbit string
}

const (
	closedByServer = "0 connection.close {ReplyCode:"
	contentHeader  = "\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)

func frameOf(typ uint8, channel uint16, payload string) func(*peer) {
	return func(p *peer) { p.frame(typ, channel, payload) }
}

func sendOf(channel uint16, methods ...wire.Method) func(*peer) {
	return func(p *peer) { p.send(channel, methods...) }
}

// publishRaw publishes with a content header of that body size and properties.
func publishRaw(size byte, properties string) func(*peer) {
	return func(p *peer) {
		m := to("none")
		p.send(1, &m)
		p.frame(wire.FrameHeader, 1, contentHeader+string(size)+properties)
	}
}

func publishOf(m wire.BasicPublish, properties wire.Properties) func(*peer) {
	return func(p *peer) { p.publish(m, properties, "") }
}

func loginOf(mechanism, response string, properties wire.Table) func(*peer) {
	return func(p *peer) {
		p.send(0, &wire.ConnectionStartOk{ClientProperties: properties, Mechanism: mechanism, Response: response, Locale: "en_US"})
	}
}

func tuneOf(m wire.ConnectionTuneOk) func(*peer) {
	return func(p *peer) {
		p.send(0, &m)
		if m.ChannelMax != 0 && m.ChannelMax <= channelMax && m.FrameMax >= wire.FrameMinSize && m.FrameMax <= frameMax {
			p.send(0, &wire.ConnectionOpen{VirtualHost: "/"})
		}
	}
}

const (
	tune        = "0 connection.tune {ChannelMax:2047 FrameMax:131072 Heartbeat:60}"
	loginFailed = closedByServer + "403 ReplyText:ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile. ClassID:0 MethodID:0}"
)

func refusedTune(why string) string {
	return closedByServer + "530 ReplyText:NOT_ALLOWED - negotiated " + why + " ClassID:10 MethodID:30}"
}

func lines(l ...string) string { return strings.Join(l, "\n") }

var scripts = []script{
	// The handshake.
	{"start/0-9 is taken for 0-9-1", connected, func(p *peer) { p.raw("AMQP\x01\x01\x00\x09"); p.skip(1); p.send(0, startOk()) }, tune, ""},
	{"login/plain", started, loginOf("PLAIN", "\x00guest\x00guest", nil), tune, ""},
	{"login/amqplain", started, loginOf("AMQPLAIN", string(wire.Table{{Name: "LOGIN", Value: "guest"}, {Name: "PASSWORD", Value: "guest"}}.AppendTo(nil)), nil), tune, ""},
	{"login/wrong password", started, loginOf("PLAIN", "\x00guest\x00x", allCapabilities), loginFailed, ""},
	{"login/unknown user", started, loginOf("PLAIN", "\x00nobody\x00x", allCapabilities), loginFailed, ""},
	{"login/wrong password without the capability", started, loginOf("PLAIN", "\x00guest\x00x", nil), "end", "nothing"},
	{"login/malformed plain", started, loginOf("PLAIN", "guest", allCapabilities), "end", "nothing"},
	{"login/malformed amqplain", started, loginOf("AMQPLAIN", "zzz", allCapabilities), "end", "nothing"},
	{"login/amqplain without password", started, loginOf("AMQPLAIN", string(wire.Table{{Name: "LOGIN", Value: "guest"}}.AppendTo(nil)), allCapabilities), "end", "nothing"},
	{"login/unknown mechanism", started, loginOf("NONE", "", allCapabilities), "end", "nothing"},
	{"login/close instead", started, sendOf(0, &wire.ConnectionClose{}), "0 connection.close-ok {}", "nothing"},
	{"tune/open instead", loggedIn, sendOf(0, &wire.ConnectionOpen{VirtualHost: "/"}), "end", "nothing"},
	{"tune/channel-max 0", loggedIn, tuneOf(wire.ConnectionTuneOk{FrameMax: frameMax}), refusedTune("channel_max = 0 (no limit) is higher than the maximum allowed value (2047)"), "nothing"},
	{"tune/channel-max 3000", loggedIn, tuneOf(wire.ConnectionTuneOk{FrameMax: frameMax, ChannelMax: 3000}), refusedTune("channel_max = 3000 is higher than the maximum allowed value (2047)"), "nothing"},
	{"tune/frame-max 0", loggedIn, tuneOf(wire.ConnectionTuneOk{ChannelMax: 1}), refusedTune("frame_max = 0 is higher than the maximum allowed value (131072)"), "nothing"},
	{"tune/frame-max 4095", loggedIn, tuneOf(wire.ConnectionTuneOk{ChannelMax: 1, FrameMax: 4095}), refusedTune("frame_max = 4095 is lower than the minimum allowed value (4096)"), "nothing"},
	{"tune/frame-max 200000", loggedIn, tuneOf(wire.ConnectionTuneOk{ChannelMax: 1, FrameMax: 200000}), refusedTune("frame_max = 200000 is higher than the maximum allowed value (131072)"), "nothing"},
	{"tune/heartbeat 0", loggedIn, tuneOf(wire.ConnectionTuneOk{ChannelMax: 1, FrameMax: frameMax}), "0 connection.open-ok {}", ""},
	{"open/unknown vhost", loggedIn, sendOf(0, tuneOk(), &wire.ConnectionOpen{VirtualHost: "nope"}), closedByServer + "530 ReplyText:NOT_ALLOWED - vhost nope not found ClassID:10 MethodID:40}", ""},
	{"open/channel.open instead", loggedIn, func(p *peer) { p.send(0, tuneOk()); p.send(1, &wire.ChannelOpen{}) }, closedByServer + "505 ReplyText:UNEXPECTED_FRAME - type 1, all octets = <<0,20,0,10,0>> ClassID:0 MethodID:0}", ""},

	// Frames and methods that must not be.
	{"frame/unknown method", opened, frameOf(1, 1, "\x00\x3c\x03\xe7"), closedByServer + "503 ReplyText:COMMAND_INVALID - unknown method 999 of class 60 ClassID:60 MethodID:999}", "end"},
	{"frame/unknown method on channel 0", opened, frameOf(1, 0, "\x03\x3c\x00\x0a"), closedByServer + "503 ReplyText:COMMAND_INVALID - unknown method 10 of class 828 ClassID:828 MethodID:10}", "end"},
	{"frame/half a method", opened, frameOf(1, 1, "\x03\x3c"), closedByServer + "501 ReplyText:FRAME_ERROR - type 1, all octets = <<3,60>>: unknown_frame ClassID:0 MethodID:0}", ""},
	{"frame/malformed arguments", opened, frameOf(1, 1, "\x00\x32\x00\x0a\x00\x00\x05ab"), closedByServer + "501 ReplyText:FRAME_ERROR - cannot decode <<0,0,5,97,98>> ClassID:50 MethodID:10}", ""},
	{"frame/arguments left over", opened, frameOf(1, 1, "\x00\x3c\x00\x50\x00\x00\x00\x00\x00\x00\x00\x01\x00z"), closedByServer + "501 ReplyText:FRAME_ERROR - cannot decode <<0,0,0,0,0,0,0,1,0,122>> ClassID:60 MethodID:80}", ""},
	{"frame/too large", opened, func(p *peer) { p.raw("\x01\x00\x01\x00\xff\xff\xff") }, closedByServer + "501 ReplyText:FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large,16777215,131064} ClassID:0 MethodID:0}", ""},
	{"frame/bad end", opened, func(p *peer) { p.raw("\x01\x00\x01\x00\x00\x00\x04\x00\x14\x00\x0aX") }, closedByServer + "501 ReplyText:FRAME_ERROR - type 1, all octets = <<0,20,0,10>>: {invalid_frame_end_marker,88} ClassID:0 MethodID:0}", ""},
	{"frame/unknown type", opened, frameOf(9, 1, "abc"), closedByServer + `501 ReplyText:FRAME_ERROR - type 9, all octets = <<"abc">>: unknown_frame ClassID:0 MethodID:0}`, ""},
	{"frame/unknown type on channel 0", opened, frameOf(9, 0, "abc"), closedByServer + `501 ReplyText:FRAME_ERROR - type 9, all octets = <<"abc">>: unknown_frame ClassID:0 MethodID:0}`, ""},
	{"frame/heartbeat on a channel", opened, frameOf(8, 1, ""), closedByServer + "505 ReplyText:UNEXPECTED_FRAME - type 8, all octets = <<>> ClassID:0 MethodID:0}", ""},
	{"frame/heartbeat with payload", opened, frameOf(8, 0, "x"), closedByServer + `501 ReplyText:FRAME_ERROR - type 8, all octets = <<"x">>: unknown_frame ClassID:0 MethodID:0}`, ""},
	{"frame/content on channel 0", opened, frameOf(2, 0, contentHeader+"\x00\x00\x00"), closedByServer + "505 ReplyText:UNEXPECTED_FRAME - type 2, all octets = <<0,60,0,0,0,0,0,0,0,0,0,0,0,0>> ClassID:0 MethodID:0}", ""},
	{"frame/method of the server", opened, sendOf(1, &wire.QueueDeclareOk{Queue: "x"}), closedByServer + "503 ReplyText:COMMAND_INVALID - unimplemented method ClassID:50 MethodID:11}", ""},
	{"frame/content method of the server", opened, func(p *peer) { p.send(1, &wire.BasicDeliver{}); p.frame(2, 1, contentHeader+"\x00\x00\x00") }, closedByServer + "503 ReplyText:COMMAND_INVALID - unimplemented method ClassID:60 MethodID:60}", ""},
	{"frame/connection method of the server", opened, sendOf(0, &wire.ConnectionStart{}), closedByServer + "504 ReplyText:CHANNEL_ERROR - unexpected method in connection state running ClassID:10 MethodID:10}", ""},
	{"frame/channel method on channel 0", opened, sendOf(0, &wire.ChannelOpen{}), closedByServer + "504 ReplyText:CHANNEL_ERROR - unexpected method in connection state running ClassID:20 MethodID:10}", ""},
	{"frame/connection method on a channel", opened, sendOf(1, &wire.ConnectionClose{}), closedByServer + "503 ReplyText:COMMAND_INVALID - unimplemented method ClassID:10 MethodID:50}", ""},

	// Content.
	{"content/body instead of a method", opened, frameOf(3, 1, "abc"), closedByServer + "505 ReplyText:UNEXPECTED_FRAME - expected method frame, got non method frame instead ClassID:0 MethodID:0}", ""},
	{"content/method instead of a header", opened, sendOf(1, &wire.BasicPublish{}, &wire.BasicPublish{}), closedByServer + "505 ReplyText:UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead ClassID:60 MethodID:40}", ""},
	{"content/body instead of a header", opened, func(p *peer) { p.send(1, &wire.BasicPublish{}); p.frame(3, 1, "a") }, closedByServer + "505 ReplyText:UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead ClassID:60 MethodID:40}", ""},
	{"content/header of another class", opened, func(p *peer) {
		p.send(1, &wire.BasicPublish{})
		p.frame(2, 1, "\x00\x32"+contentHeader[2:]+"\x05\x00\x00")
	}, closedByServer + "505 ReplyText:UNEXPECTED_FRAME - expected content header for class 60, got one for class 50 instead ClassID:60 MethodID:40}", ""},
	{"content/header with weight", opened, func(p *peer) {
		p.send(1, &wire.BasicPublish{})
		p.frame(2, 1, "\x00\x3c\x00\x01"+contentHeader[4:]+"\x05\x00\x00")
	}, closedByServer + "505 ReplyText:UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead ClassID:60 MethodID:40}", ""},
	{"content/half a header", opened, frameOf(2, 1, "\x00\x3c\x00\x00"), closedByServer + "501 ReplyText:FRAME_ERROR - type 2, all octets = <<0,60,0,0>>: unknown_frame ClassID:0 MethodID:0}", ""},
	{"content/method instead of a body", opened, func(p *peer) { publishRaw(5, "\x00\x00")(p); p.send(1, &wire.BasicPublish{}) }, closedByServer + "505 ReplyText:UNEXPECTED_FRAME - expected content body, got non content body frame instead ClassID:60 MethodID:40}", ""},
	{"content/body too long", opened, func(p *peer) { publishRaw(5, "\x00\x00")(p); p.frame(3, 1, "abcdef") }, closedByServer + "501 ReplyText:FRAME_ERROR - content body frame exceeds remaining content size ClassID:60 MethodID:40}", ""},
	{"content/beyond the protocol's limit", opened, func(p *peer) {
		p.send(1, &wire.BasicPublish{})
		p.frame(2, 1, "\x00\x3c\x00\x00\x00\x00\x00\x00\x7f\x00\x00\x05\x00\x00")
	}, closedByServer + "501 ReplyText:FRAME_ERROR - content body size 2130706437 exceeds maximum allowed size 536870912 ClassID:60 MethodID:40}", ""},
	{"content/message too large", opened, func(p *peer) {
		p.send(1, &wire.BasicPublish{})
		p.frame(2, 1, "\x00\x3c\x00\x00\x00\x00\x00\x00\x01\x00\x00\x01\x00\x00")
		part := strings.Repeat("x", 1<<17-8)
		for left := 1<<24 + 1; left > 0; left -= len(part) {
			p.frame(3, 1, part[:min(left, len(part))])
		}
	}, "1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - message size 16777217 is larger than configured max size 16777216 ClassID:60 MethodID:40}", ""},
	{"content/in several frames, an empty one too", opened, func(p *peer) {
		p.declare(p.queue, nil)
		m := to(p.queue)
		p.send(1, &m)
		p.frame(2, 1, contentHeader+"\x05\x00\x00")
		p.frame(3, 1, "ab")
		p.frame(3, 1, "")
		p.frame(3, 1, "cde")
		p.send(1, &wire.BasicGet{Queue: p.queue})
	}, lines("1 basic.get-ok {DeliveryTag:1 Redelivered:false Exchange: RoutingKey:session-script MessageCount:0}", `1 header 5 "\x00\x00"`, "1 body abcde"), ""},
	{"content/malformed properties", opened, publishRaw(0, "\x80\x00\x09a"), closedByServer + "502 ReplyText:SYNTAX_ERROR - malformed content properties ClassID:60 MethodID:40}", closedByServer + "541 ReplyText:INTERNAL_ERROR ClassID:0 MethodID:0}"},
	{"content/malformed headers", opened, publishRaw(0, "\x20\x00\x00\x00\x00\x03\x01aQ"), closedByServer + "502 ReplyText:SYNTAX_ERROR - malformed field table ClassID:60 MethodID:40}", closedByServer + "541 ReplyText:INTERNAL_ERROR ClassID:0 MethodID:0}"},

	// Channels.
	{"channel/not opened", opened, sendOf(7, &wire.QueueDeclare{Queue: "nope", Passive: true}), closedByServer + "504 ReplyText:CHANNEL_ERROR - expected 'channel.open' ClassID:50 MethodID:10}", ""},
	{"channel/opened twice", opened, sendOf(1, &wire.ChannelOpen{}), closedByServer + "504 ReplyText:CHANNEL_ERROR - second 'channel.open' seen ClassID:20 MethodID:10}", ""},
	{"channel/number beyond channel-max", opened, sendOf(3000, &wire.ChannelOpen{}), "3000 channel.open-ok {}", ""},
	{"channel/too many", loggedIn, func(p *peer) {
		p.send(0, &wire.ConnectionTuneOk{ChannelMax: 1, FrameMax: frameMax}, &wire.ConnectionOpen{VirtualHost: "/"})
		p.skip(1)
		p.channel(1).send(2, &wire.ChannelOpen{})
	}, closedByServer + "530 ReplyText:NOT_ALLOWED - number of channels opened (1) has reached the negotiated channel_max (1) ClassID:0 MethodID:0}", ""},
	{"channel/closed and opened again", opened, func(p *peer) {
		p.send(1, &wire.ChannelClose{})
		p.expect("1 channel.close-ok {}")
		p.send(1, &wire.ChannelOpen{})
	}, "1 channel.open-ok {}", ""},
	{"channel/all is discarded after an exception", opened, func(p *peer) {
		p.send(1, &wire.QueueDeclare{Queue: "nope", Passive: true}, &wire.QueueDeclare{Queue: "nope2", Passive: true}, &wire.BasicAck{DeliveryTag: 9})
		p.publish(wire.BasicPublish{Exchange: []byte("nope")}, wire.Properties{}, "x")
		p.send(1, &wire.ChannelCloseOk{}, &wire.ChannelOpen{})
	}, lines("1 channel.close {ReplyCode:404 ReplyText:NOT_FOUND - no queue 'nope' in vhost '/' ClassID:50 MethodID:10}", "1 channel.open-ok {}"), ""},
	{"channel/both close", opened, sendOf(1, &wire.BasicAck{DeliveryTag: 9}, &wire.ChannelClose{}), lines(
		"1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - unknown delivery tag 9 ClassID:60 MethodID:80}", "1 channel.close-ok {}"), ""},
	{"channel/close-ok without close", opened, sendOf(1, &wire.ChannelCloseOk{}), closedByServer + "503 ReplyText:COMMAND_INVALID - unimplemented method ClassID:20 MethodID:41}", ""},
	{"channel/flow", opened, sendOf(1, &wire.ChannelFlow{Active: true}, &wire.ChannelFlow{}), lines("1 channel.flow-ok {Active:true}", closedByServer+"540 ReplyText:NOT_IMPLEMENTED - active=false ClassID:20 MethodID:20}"), ""},
	{"channel/ticket", opened, sendOf(1, &wire.AccessRequest{}), "1 access.request-ok {Ticket:1}", ""},

	// Connections.
	{"connection/close", opened, sendOf(0, &wire.ConnectionClose{ReplyCode: 200}), "0 connection.close-ok {}", ""},
	{"connection/close-ok without close", opened, sendOf(0, &wire.ConnectionCloseOk{}), closedByServer + "504 ReplyText:CHANNEL_ERROR - unexpected method in connection state running ClassID:10 MethodID:51}", ""},
	{"connection/update-secret", opened, sendOf(0, &wire.ConnectionUpdateSecret{NewSecret: "x"}), "0 connection.update-secret-ok {}", ""},
	{"connection/both close", opened, sendOf(0, &wire.ConnectionStart{}, &wire.ConnectionClose{}), lines(closedByServer+"504 ReplyText:CHANNEL_ERROR - unexpected method in connection state running ClassID:10 MethodID:10}", "0 connection.close-ok {}"), ""},

	// Publishing.
	{"publish/immediate", opened, publishOf(wire.BasicPublish{Immediate: true}, wire.Properties{}), closedByServer + "540 ReplyText:NOT_IMPLEMENTED - immediate=true ClassID:60 MethodID:40}", ""},
	{"publish/mandatory without a route", opened, publishOf(wire.BasicPublish{Mandatory: true, RoutingKey: []byte("nope")}, wire.Properties{Flags: wire.FlagAppID, AppID: "x"}), lines("1 basic.return {ReplyCode:312 ReplyText:NO_ROUTE Exchange: RoutingKey:nope}", `1 header 0 "\x00\b\x01x"`), ""},
	{"publish/no exchange", opened, publishOf(wire.BasicPublish{Exchange: []byte("nope")}, wire.Properties{}), "1 channel.close {ReplyCode:404 ReplyText:NOT_FOUND - no exchange 'nope' in vhost '/' ClassID:60 MethodID:40}", ""},
	{"publish/no exchange comes before a bad expiration", opened, publishOf(wire.BasicPublish{Exchange: []byte("nope")}, wire.Properties{Flags: wire.FlagExpiration, Expiration: "x"}), "1 channel.close {ReplyCode:404 ReplyText:NOT_FOUND - no exchange 'nope' in vhost '/' ClassID:60 MethodID:40}", ""},
	{"publish/bad expiration", opened, publishOf(wire.BasicPublish{}, wire.Properties{Flags: wire.FlagExpiration, Expiration: "x"}), "1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - invalid expiration 'x': no_integer ClassID:60 MethodID:40}", ""},
	{"publish/internal exchange", opened, publishOf(wire.BasicPublish{Exchange: []byte("amq.rabbitmq.trace")}, wire.Properties{}), "1 channel.close {ReplyCode:403 ReplyText:ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/' ClassID:60 MethodID:40}", ""},
	{"publish/another user", opened, publishOf(wire.BasicPublish{}, wire.Properties{Flags: wire.FlagUserID, UserID: "bob"}), "1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - user_id property set to 'bob' but authenticated user was 'guest' ClassID:60 MethodID:40}", ""},
	{"publish/the same user", opened, func(p *peer) {
		p.publish(wire.BasicPublish{Mandatory: true}, wire.Properties{Flags: wire.FlagUserID, UserID: "guest"}, "")
	}, lines("1 basic.return {ReplyCode:312 ReplyText:NO_ROUTE Exchange: RoutingKey:}", `1 header 0 "\x00\x10\x05guest"`), ""},
	{"publish/return comes before its confirm", opened, func(p *peer) {
		p.send(1, &wire.ConfirmSelect{NoWait: true})
		p.publish(wire.BasicPublish{Mandatory: true, RoutingKey: []byte("nope")}, wire.Properties{}, "a")
	}, lines("1 basic.return {ReplyCode:312 ReplyText:NO_ROUTE Exchange: RoutingKey:nope}", `1 header 1 "\x00\x00"`, "1 body a", "1 basic.ack {DeliveryTag:1 Multiple:false}"), ""},
	{"publish/what was confirmed is read before a return", opened, func(p *peer) {
		p.send(1, &wire.ConfirmSelect{NoWait: true})
		p.publish(wire.BasicPublish{RoutingKey: []byte("nope")}, wire.Properties{}, "a")
		p.publish(wire.BasicPublish{Mandatory: true, RoutingKey: []byte("nope")}, wire.Properties{}, "b")
	}, lines("1 basic.ack {DeliveryTag:1 Multiple:false}", "1 basic.return {ReplyCode:312 ReplyText:NO_ROUTE Exchange: RoutingKey:nope}", `1 header 1 "\x00\x00"`, "1 body b", "1 basic.ack {DeliveryTag:2 Multiple:false}"), ""},
	{"confirm/then tx", opened, sendOf(1, &wire.ConfirmSelect{}, &wire.ConfirmSelect{}, &wire.TxSelect{}), lines("1 confirm.select-ok {}", "1 confirm.select-ok {}",
		"1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - cannot switch from confirm to tx mode ClassID:90 MethodID:10}"), ""},

	// Consuming.
	{"consume/generated tag", opened, func(p *peer) { p.declare(p.queue, nil); p.send(1, &wire.BasicConsume{}) }, "1 basic.consume-ok {ConsumerTag:amq.ctag-*}", ""},
	{"consume/tag in use", opened, func(p *peer) {
		p.declare(p.queue, nil)
		p.send(1, &wire.BasicConsume{ConsumerTag: "a"})
		p.skip(1)
		p.send(1, &wire.BasicConsume{ConsumerTag: "a"})
	}, closedByServer + "530 ReplyText:NOT_ALLOWED - attempt to reuse consumer tag 'a' ClassID:60 MethodID:20}", ""},
	{"consume/exclusive", opened, func(p *peer) {
		p.declare(p.queue, nil)
		p.send(1, &wire.BasicConsume{Exclusive: true})
		p.skip(1)
		p.send(1, &wire.BasicConsume{})
	}, "1 channel.close {ReplyCode:403 ReplyText:ACCESS_REFUSED - queue 'session-script' in vhost '/' in exclusive use ClassID:60 MethodID:20}", ""},
	{"consume/priority as string", opened, func(p *peer) {
		p.declare(p.queue, nil)
		p.send(1, &wire.BasicConsume{Arguments: wire.Table{{Name: "x-priority", Value: "high"}}})
	}, `1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'session-script' in vhost '/': "expected integer, got longstr" ClassID:60 MethodID:20}`, ""},
	{"consume/no queue declared", opened, sendOf(1, &wire.BasicConsume{}), "1 channel.close {ReplyCode:404 ReplyText:NOT_FOUND - no previously declared queue ClassID:60 MethodID:20}", ""},
	{"consume/no such queue", opened, sendOf(1, &wire.BasicConsume{Queue: "nope"}), "1 channel.close {ReplyCode:404 ReplyText:NOT_FOUND - no queue 'nope' in vhost '/' ClassID:60 MethodID:20}", ""},
	{"cancel/unknown tag", opened, sendOf(1, &wire.BasicCancel{ConsumerTag: "nobody"}), "1 basic.cancel-ok {ConsumerTag:nobody}", ""},
	{"cancel/by the server", opened, func(p *peer) {
		p.declare(p.queue, nil)
		p.send(1, &wire.BasicConsume{ConsumerTag: "a"})
		p.skip(1)
		p.send(1, &wire.QueueDelete{NoWait: true})
		p.expect("1 basic.cancel {ConsumerTag:a NoWait:true}")
		p.send(1, &wire.BasicCancel{ConsumerTag: "a"})
	}, "1 basic.cancel-ok {ConsumerTag:a}", ""},
	{"qos/prefetch size", opened, sendOf(1, &wire.BasicQos{PrefetchSize: 1}), closedByServer + "540 ReplyText:NOT_IMPLEMENTED - prefetch_size!=0 (1) ClassID:60 MethodID:10}", ""},
	{"qos/global is for the channel", opened, func(p *peer) {
		p.declare(p.queue, nil)
		p.send(1, &wire.BasicQos{PrefetchCount: 1, Global: true})
		p.skip(1)
		for range 3 {
			p.publish(to(p.queue), wire.Properties{}, "")
		}
		p.send(1, &wire.BasicConsume{ConsumerTag: "a"})
		p.expect("1 basic.consume-ok {ConsumerTag:a}", "1 basic.deliver {ConsumerTag:a DeliveryTag:1 Redelivered:false Exchange: RoutingKey:session-script}", `1 header 0 "\x00\x00"`)
		p.send(1, &wire.BasicConsume{ConsumerTag: "b"})
	}, "1 basic.consume-ok {ConsumerTag:b}", lines("1 basic.consume-ok {ConsumerTag:b}", "1 basic.deliver {ConsumerTag:b DeliveryTag:2 Redelivered:false Exchange: RoutingKey:session-script}", `1 header 0 "\x00\x00"`)},

	// Settling.
	{"settle/unknown tag", opened, sendOf(1, &wire.BasicReject{DeliveryTag: 7}), "1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - unknown delivery tag 7 ClassID:60 MethodID:90}", ""},
	{"settle/0 means all only with multiple", opened, sendOf(1, &wire.BasicAck{Multiple: true}, &wire.BasicNack{Multiple: true}, &wire.BasicAck{}), "1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - unknown delivery tag 0 ClassID:60 MethodID:80}", ""},
	{"recover/without requeue", opened, sendOf(1, &wire.BasicRecover{}), closedByServer + "540 ReplyText:NOT_IMPLEMENTED - requeue=false ClassID:60 MethodID:110}", ""},
	{"recover/both ways", opened, sendOf(1, &wire.BasicRecoverAsync{Requeue: true}, &wire.BasicRecover{Requeue: true}), "1 basic.recover-ok {}", ""},
	{"get/empty", opened, func(p *peer) { p.declare(p.queue, nil); p.send(1, &wire.BasicGet{}) }, "1 basic.get-empty {}", ""},

	// Transactions.
	{"tx/then confirm", opened, sendOf(1, &wire.TxSelect{}, &wire.TxSelect{}, &wire.ConfirmSelect{}), lines("1 tx.select-ok {}", "1 tx.select-ok {}",
		"1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - cannot switch from tx to confirm mode ClassID:85 MethodID:10}"), ""},
	{"tx/commit without select", opened, sendOf(1, &wire.TxCommit{}), "1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - channel is not transactional ClassID:90 MethodID:20}", ""},
	{"tx/rollback without select", opened, sendOf(1, &wire.TxRollback{}), "1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - channel is not transactional ClassID:90 MethodID:30}", ""},
	{"tx/returns at commit", opened, func(p *peer) {
		p.send(1, &wire.TxSelect{})
		p.skip(1)
		p.publish(wire.BasicPublish{Mandatory: true, RoutingKey: []byte("nope")}, wire.Properties{}, "")
		p.silence()
		p.send(1, &wire.TxCommit{})
	}, lines("1 basic.return {ReplyCode:312 ReplyText:NO_ROUTE Exchange: RoutingKey:nope}", `1 header 0 "\x00\x00"`, "1 tx.commit-ok {}"), ""},
	{"tx/no exchange", opened, func(p *peer) {
		p.send(1, &wire.TxSelect{})
		p.skip(1)
		p.publish(wire.BasicPublish{Exchange: []byte("nope")}, wire.Properties{}, "")
	}, "1 channel.close {ReplyCode:404 ReplyText:NOT_FOUND - no exchange 'nope' in vhost '/' ClassID:60 MethodID:40}", ""},

	// Exchanges and queues.
	{"topology/all of it", opened, sendOf(1,
		&wire.ExchangeDeclare{Exchange: "session-script", Type: "topic"}, &wire.ExchangeDeclare{Exchange: "session-script", Passive: true},
		&wire.ExchangeBind{Destination: "session-script", Source: "amq.topic", RoutingKey: "a"}, &wire.ExchangeUnbind{Destination: "session-script", Source: "amq.topic", RoutingKey: "a"},
		&wire.QueueDeclare{Queue: "session-script", Exclusive: true}, &wire.QueueBind{Exchange: "session-script", RoutingKey: "#"}, &wire.QueueBind{Exchange: "session-script"},
		&wire.QueueUnbind{Exchange: "session-script"}, &wire.QueuePurge{}, &wire.QueueDelete{}, &wire.ExchangeDelete{Exchange: "session-script"},
	), lines("1 exchange.declare-ok {}", "1 exchange.declare-ok {}", "1 exchange.bind-ok {}", "1 exchange.unbind-ok {}",
		"1 queue.declare-ok {Queue:session-script MessageCount:0 ConsumerCount:0}", "1 queue.bind-ok {}", "1 queue.bind-ok {}",
		"1 queue.unbind-ok {}", "1 queue.purge-ok {MessageCount:0}", "1 queue.delete-ok {MessageCount:0}", "1 exchange.delete-ok {}"), ""},
	{"topology/all of it without answers", opened, sendOf(1,
		&wire.ExchangeDeclare{Exchange: "session-quiet", Type: "topic", NoWait: true}, &wire.ExchangeDeclare{Exchange: "session-quiet", Passive: true, NoWait: true},
		&wire.ExchangeBind{Destination: "session-quiet", Source: "amq.topic", RoutingKey: "a", NoWait: true}, &wire.ExchangeUnbind{Destination: "session-quiet", Source: "amq.topic", RoutingKey: "a", NoWait: true},
		&wire.QueueDeclare{Queue: "session-quiet", Exclusive: true, NoWait: true}, &wire.QueueBind{Exchange: "session-quiet", RoutingKey: "#", NoWait: true},
		&wire.BasicConsume{ConsumerTag: "a", NoWait: true}, &wire.BasicCancel{ConsumerTag: "a", NoWait: true},
		&wire.QueuePurge{NoWait: true}, &wire.QueueDelete{NoWait: true}, &wire.ExchangeDelete{Exchange: "session-quiet", NoWait: true},
	), "nothing", ""},
	{"topology/no queue declared", opened, sendOf(1, &wire.QueueBind{Exchange: "amq.direct", RoutingKey: "x"}), "1 channel.close {ReplyCode:404 ReplyText:NOT_FOUND - no previously declared queue ClassID:50 MethodID:20}", ""},

	// Direct reply-to.
	{"reply/without consumer", opened, publishOf(wire.BasicPublish{}, wire.Properties{Flags: wire.FlagReplyTo, ReplyTo: replyQueue}), "1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - fast reply consumer does not exist ClassID:60 MethodID:40}", ""},
	{"reply/with acknowledgement", opened, sendOf(1, &wire.BasicConsume{Queue: replyQueue}), "1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - reply consumer cannot acknowledge ClassID:60 MethodID:20}", ""},
	{"reply/two consumers", opened, sendOf(1, &wire.BasicConsume{Queue: replyQueue, NoAck: true, ConsumerTag: "a"}, &wire.BasicConsume{Queue: replyQueue, NoAck: true, ConsumerTag: "b"}), lines(
		"1 basic.consume-ok {ConsumerTag:a}", "1 channel.close {ReplyCode:406 ReplyText:PRECONDITION_FAILED - reply consumer already set ClassID:60 MethodID:20}"), ""},
	{"reply/cancelled and set again", opened, sendOf(1, &wire.BasicConsume{Queue: replyQueue, NoAck: true, ConsumerTag: "a"}, &wire.BasicCancel{ConsumerTag: "a"}, &wire.BasicConsume{Queue: replyQueue, NoAck: true, ConsumerTag: "b"}), lines(
		"1 basic.consume-ok {ConsumerTag:a}", "1 basic.cancel-ok {ConsumerTag:a}", "1 basic.consume-ok {ConsumerTag:b}"), ""},
	{"reply/to nobody", opened, publishOf(wire.BasicPublish{Mandatory: true, RoutingKey: []byte(replyPrefix + "nobody")}, wire.Properties{}), lines(
		"1 basic.return {ReplyCode:312 ReplyText:NO_ROUTE Exchange: RoutingKey:amq.rabbitmq.reply-to.nobody}", `1 header 0 "\x00\x00"`), ""},
	{"reply/declared", opened, sendOf(1, &wire.QueueDeclare{Queue: replyQueue}), "1 queue.declare-ok {Queue:amq.rabbitmq.reply-to MessageCount:0 ConsumerCount:1}", ""},
}

func (s script) run(t *testing.T, p *peer, want string) {
	t.Helper()
	switch s.from {
	case started:
		p.start()
	case loggedIn:
		p.login()
	case opened:
		p.open().channel(1)
	}
	s.play(p)
	p.expect(strings.Split(want, "\n")...)
	if !strings.HasSuffix(want, "end") && !strings.HasSuffix(want, "nothing") {
		p.silence()
	}
}

func TestScripts(t *testing.T) {
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, e *env) { s.run(t, e.dial(), s.want) })
		})
	}
}

// TestScriptsOnRabbitMQ plays the scripts to the RabbitMQ 4.3 nodes in
// DORMOUSE_TEST_AMQP, to find out whether they are true.
func TestScriptsOnRabbitMQ(t *testing.T) {
	address := rabbitMQ(t)
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			want := s.want
			if s.rabbit != "" {
				want = s.rabbit
			}
			p := newPeer(t, c, 500*time.Millisecond)
			p.queue += s.name // a queue goes some time after its connection
			s.run(t, p, want)
		})
	}
}

// rabbitMQ returns the address of a RabbitMQ 4.3 node, or skips the test.
func rabbitMQ(t *testing.T) string {
	for text := range strings.SplitSeq(os.Getenv("DORMOUSE_TEST_AMQP"), ",") {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil || u.Host == "" {
			continue
		}
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		p := newPeer(t, c, 2*time.Second)
		p.raw(wire.ProtocolHeader)
		if start := p.next(); strings.Contains(start, "Name:product Value:RabbitMQ") && strings.Contains(start, "Name:version Value:4.3") && !strings.Contains(start, "Value:Dormouse") {
			return u.Host
		}
	}
	t.Skip("no RabbitMQ 4.3 in DORMOUSE_TEST_AMQP: the scripts are not compared with it")
	return ""
}
