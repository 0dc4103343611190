package management

import (
	"slices"

	"github.com/dormousemq/dormouse/internal/policy"
)

// vhostVariable is the variable of a path that names a virtual host that the user must
// be permitted to enter.
const vhostVariable = "vhost"

func at(path string, may rule, methods map[string]action) endpoint {
	return endpoint{path: path, may: may, methods: methods}
}

// changedBy says who may do more than look.
func (e endpoint) changedBy(change rule) endpoint {
	e.change = change
	return e
}

func reads(do action) map[string]action { return map[string]action{"GET": do} }

// endpoints are all that there are.
func endpoints() []endpoint {
	return slices.Concat(
		accessEndpoints(),
		policyEndpoints("/policies", policy.Regular, policymakers),
		policyEndpoints("/operator-policies", policy.Operator, administrators),
		parameterEndpoints(),
		definitionEndpoints(),
		limitEndpoints(),
		topologyEndpoints(),
		connectionEndpoints(),
		nodeEndpoints(),
		healthEndpoints(),
	)
}

func accessEndpoints() []endpoint {
	permission := map[string]action{"GET": getPermission, "PUT": putPermission, "DELETE": deletePermission}
	topic := map[string]action{"GET": getTopicPermissions, "PUT": putTopicPermission, "DELETE": deleteTopicPermissions}
	return []endpoint{
		at("/whoami", anyManager, reads(whoAmI)),
		at("/vhosts", anyManager, reads(listVHosts)),
		at("/vhosts/{name}", administrators, map[string]action{"GET": getVHost, "PUT": putVHost, "DELETE": deleteVHost}),
		at("/vhosts/{name}/permissions", administrators, reads(permissionsOfVHost)),
		at("/vhosts/{name}/topic-permissions", administrators, reads(topicPermissionsOfVHost)),
		at("/vhosts/{name}/start/{node}", administrators, map[string]action{"POST": startVHost}),
		at("/vhosts/{vhost}/connections", anyManager, reads(listConnections)),
		at("/vhosts/{vhost}/channels", anyManager, reads(listChannels)),
		at("/users", administrators, reads(listUsers)),
		at("/users/without-permissions", administrators, reads(listUsersWithoutPermissions)),
		at("/users/bulk-delete", administrators, map[string]action{"POST": deleteUsers}),
		at("/users/{user}", administrators, map[string]action{"GET": getUser, "PUT": putUser, "DELETE": deleteUser}),
		at("/users/{user}/permissions", administrators, reads(permissionsOfUser)),
		at("/users/{user}/topic-permissions", administrators, reads(topicPermissionsOfUser)),
		at("/permissions", administrators, reads(listPermissions)),
		at("/permissions/{in}/{user}", administrators, permission),
		at("/topic-permissions", administrators, reads(listTopicPermissions)),
		at("/topic-permissions/{in}/{user}", administrators, topic),
		at("/topic-permissions/{in}/{user}/{exchange}", administrators, map[string]action{"DELETE": deleteTopicPermissions}),
		at("/auth/hash_password/{password}", administrators, reads(hashPassword)),
		at("/auth/attempts/{node}", monitors, map[string]action{"GET": listAttempts, "DELETE": resetAttempts}),
	}
}

func parameterEndpoints() []endpoint {
	one := map[string]action{"GET": getParameter, "PUT": putParameter, "DELETE": deleteParameter}
	global := map[string]action{"GET": getGlobal, "PUT": putGlobal, "DELETE": deleteGlobal}
	return []endpoint{
		at("/parameters", policymakers, reads(listParameters)),
		at("/parameters/{component}", policymakers, reads(listParameters)),
		at("/parameters/{component}/{vhost}", policymakers, reads(listParameters)),
		at("/parameters/{component}/{vhost}/{name}", policymakers, one),
		at("/global-parameters", policymakers, reads(listGlobals)),
		at("/global-parameters/{name}", policymakers, global).changedBy(administrators),
		at("/cluster-name", anyManager, map[string]action{"GET": getClusterName, "PUT": putClusterName}).changedBy(administrators),
	}
}

func definitionEndpoints() []endpoint {
	return []endpoint{
		at("/definitions", administrators, map[string]action{"GET": getDefinitions, "POST": postDefinitions}),
		at("/definitions/{of}", administrators, map[string]action{"GET": getDefinitionsOf, "POST": postDefinitionsOf}),
	}
}

func limitEndpoints() []endpoint {
	return []endpoint{
		at("/vhost-limits", anyManager, reads(listHostLimits)),
		at("/vhost-limits/{vhost}", anyManager, reads(listHostLimits)),
		at("/vhost-limits/{vhost}/{limit}", administrators, map[string]action{"PUT": putHostLimit, "DELETE": deleteHostLimit}),
		at("/user-limits", administrators, reads(listUserLimits)),
		at("/user-limits/{user}", administrators, reads(listUserLimits)),
		at("/user-limits/{user}/{limit}", administrators, map[string]action{"PUT": putUserLimit, "DELETE": deleteUserLimit}),
	}
}

func topologyEndpoints() []endpoint {
	ends := map[string]action{"GET": listBetween, "POST": postBinding}
	return []endpoint{
		at("/queues", anyManager, reads(listQueues)),
		at("/queues/detailed", anyManager, reads(listQueues)),
		at("/queues/{vhost}", anyManager, reads(listQueues)),
		at("/queues/{vhost}/{name}", anyManager, map[string]action{"GET": getQueue, "PUT": putQueue, "DELETE": deleteQueue}),
		at("/queues/{vhost}/{name}/bindings", anyManager, reads(bindingsOfQueue)),
		at("/queues/{vhost}/{name}/contents", anyManager, map[string]action{"DELETE": purgeQueue}),
		at("/queues/{vhost}/{name}/get", anyManager, map[string]action{"POST": get}),
		at("/queues/{vhost}/{name}/actions", administrators, map[string]action{"POST": actOnQueue}),
		at("/exchanges", anyManager, reads(listExchanges)),
		at("/exchanges/{vhost}", anyManager, reads(listExchanges)),
		at("/exchanges/{vhost}/{name}", anyManager, map[string]action{"GET": getExchange, "PUT": putExchange, "DELETE": deleteExchange}),
		at("/exchanges/{vhost}/{name}/bindings/source", anyManager, reads(bindingsFromExchange)),
		at("/exchanges/{vhost}/{name}/bindings/destination", anyManager, reads(bindingsToExchange)),
		at("/exchanges/{vhost}/{name}/publish", anyManager, map[string]action{"POST": publish}),
		at("/bindings", anyManager, reads(listBindings)),
		at("/bindings/{vhost}", anyManager, reads(listBindings)),
		at("/bindings/{vhost}/e/{source}/{kind}/{destination}", anyManager, ends),
		at("/bindings/{vhost}/e/{source}/{kind}/{destination}/{properties}", anyManager, map[string]action{"GET": getBinding, "DELETE": deleteBinding}),
		at("/consumers", anyManager, reads(listConsumers)),
		at("/consumers/{vhost}", anyManager, reads(listConsumers)),
	}
}

func connectionEndpoints() []endpoint {
	return []endpoint{
		at("/connections", anyManager, reads(listConnections)),
		at("/connections/{connection}", anyManager, map[string]action{"GET": getConnection, "DELETE": closeConnection}),
		at("/connections/{connection}/channels", anyManager, reads(channelsOfConnection)),
		at("/connections/username/{user}", anyManager, map[string]action{"GET": connectionsOfUser, "DELETE": closeConnectionsOfUser}),
		at("/channels", anyManager, reads(listChannels)),
		at("/channels/{channel}", anyManager, reads(getChannel)),
	}
}

func nodeEndpoints() []endpoint {
	return []endpoint{
		at("/overview", anyManager, reads(getOverview)),
		at("/version", anyManager, reads(getVersion)),
		at("/nodes", monitors, reads(listNodes)),
		at("/nodes/{node}", monitors, reads(getNode)),
		at("/nodes/{node}/memory", monitors, reads(nodeMemory)),
		at("/extensions", anyManager, reads(nothing)),
		at("/feature-flags", anyManager, reads(nothing)),
		at("/deprecated-features", anyManager, reads(nothing)),
		at("/deprecated-features/used", anyManager, reads(nothing)),
		at("/rebalance/queues", administrators, map[string]action{"POST": doNothing}),
	}
}

// nothing is an empty list.
func nothing(*Handler, *request) (any, error) { return []object{}, nil }

// doNothing has nothing to do: there is one node.
func doNothing(*Handler, *request) (any, error) { return nil, nil }

func healthEndpoints() []endpoint {
	return []endpoint{
		at("/aliveness-test/{vhost}", anyManager, reads(testAliveness)),
		at("/health/checks/alarms", anyManager, reads(checkAlarms)),
		at("/health/checks/local-alarms", anyManager, reads(checkAlarms)),
		at("/health/checks/port-listener/{port}", anyManager, reads(checkPort)),
		at("/health/checks/protocol-listener/{protocol}", anyManager, reads(checkProtocol)),
		at("/health/checks/certificate-expiration/{within}/{unit}", anyManager, reads(checkCertificates)),
		at("/health/checks/metadata-store/initialized", anyManager, reads(checkNothing)),
		at("/health/checks/metadata-store/initialized/with-data", anyManager, reads(checkNothing)),
		at("/health/checks/virtual-hosts", anyManager, reads(checkNothing)),
		at("/health/checks/node-is-quorum-critical", anyManager, reads(checkSingleNode)),
		at("/health/checks/is-in-service", anyManager, reads(checkNothing)),
		at("/health/checks/below-node-connection-limit", anyManager, reads(checkNothing)),
		at("/health/checks/ready-to-serve-clients", anyManager, reads(checkNothing)),
		at("/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}", anyManager, reads(checkNothing)),
		at("/health/checks/quorum-queues-without-elected-leaders/vhost/{of}/pattern/{pattern}", anyManager, reads(checkNothing)),
	}
}
