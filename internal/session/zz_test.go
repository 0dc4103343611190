package session
import ("testing";"testing/synctest";"github.com/dormousemq/dormouse/internal/wire")
func TestZZ(t *testing.T) { bubble(t, func(t *testing.T, e *env) {
	p := e.open()
	p.declare(p.queue, nil)
	p.send(1, &wire.BasicQos{PrefetchCount: 1, Global: true})
	p.skip(1)
	for range 3 { p.publish(to(p.queue), wire.Properties{}, "") }
	t.Log(p.count(p.queue))
	p.send(1, &wire.BasicConsume{ConsumerTag: "a"})
	t.Log(p.next(), p.next(), p.next(), p.next())
	t.Log(p.count(p.queue))
	p.send(1, &wire.BasicConsume{ConsumerTag: "b"})
	synctest.Wait()
	t.Log(p.next(), p.next(), p.next(), p.next())
	t.Log(p.count(p.queue))
	p.send(1, &wire.BasicGet{})
	t.Log(p.next(), p.next(), p.next(), p.next())
})}
