package conformance

// What the management API shows, as RabbitMQ 4.3 and the embedded broker have it.

func classicShape() shape {
	return wanted(map[string]string{
		"list": `consumer_details deliveries incoming`,
		"null": `exclusive_consumer_tag operator_policy policy single_active_consumer_tag`,
		"number": `consumer_capacity consumer_utilisation consumers memory message_bytes message_bytes_persistent message_bytes_ram
			message_bytes_ready message_bytes_unacknowledged messages messages_details.rate messages_persistent messages_ram
			messages_ready messages_ready_details.rate messages_ready_ram messages_unacknowledged
			messages_unacknowledged_details.rate messages_unacknowledged_ram storage_version`,
		"object": `arguments effective_policy_definition messages_details messages_ready_details messages_unacknowledged_details`,
		"string": `arguments.x-queue-type name node state type vhost`,
		"truth":  `auto_delete durable exclusive internal internal_owner`,
	})
}

func quorumShape() shape {
	return wanted(map[string]string{
		"list": `consumer_details deliveries incoming members online`,
		"null": `operator_policy policy single_active_consumer_tag`,
		"number": `consumer_capacity consumer_utilisation consumers delivery_limit memory message_bytes message_bytes_persistent
			message_bytes_ram message_bytes_ready message_bytes_unacknowledged messages messages_active_priorities
			messages_details.rate messages_dlx messages_persistent messages_ram messages_ready messages_ready_details.rate
			messages_ready_returned messages_unacknowledged messages_unacknowledged_details.rate`,
		"object": `arguments effective_policy_definition messages_by_priority messages_details messages_ready_details
			messages_unacknowledged_details`,
		"string": `arguments.x-queue-type leader name node state type vhost`,
		"truth":  `auto_delete durable exclusive internal internal_owner`,
	})
}

func overviewShape() shape {
	return wanted(map[string]string{
		"list": `contexts exchange_types listeners sample_retention_policies.basic sample_retention_policies.detailed
			sample_retention_policies.global`,
		"number": `churn_rates.channel_closed churn_rates.channel_closed_details.rate churn_rates.channel_created
			churn_rates.channel_created_details.rate churn_rates.connection_closed churn_rates.connection_closed_details.rate
			churn_rates.connection_created churn_rates.connection_created_details.rate churn_rates.queue_created
			churn_rates.queue_created_details.rate churn_rates.queue_declared churn_rates.queue_declared_details.rate
			churn_rates.queue_deleted churn_rates.queue_deleted_details.rate listeners[].port object_totals.channels
			object_totals.connections object_totals.consumers object_totals.exchanges object_totals.queues queue_totals.messages
			queue_totals.messages_details.rate queue_totals.messages_ready queue_totals.messages_ready_details.rate
			queue_totals.messages_unacknowledged queue_totals.messages_unacknowledged_details.rate statistics_db_event_queue`,
		"object": `churn_rates churn_rates.channel_closed_details churn_rates.channel_created_details churn_rates.connection_closed_details
			churn_rates.connection_created_details churn_rates.queue_created_details churn_rates.queue_declared_details
			churn_rates.queue_deleted_details cluster_tags listeners[].socket_opts node_tags object_totals queue_totals
			queue_totals.messages_details queue_totals.messages_ready_details queue_totals.messages_unacknowledged_details
			sample_retention_policies`,
		"string": `cluster_name default_queue_type erlang_full_version erlang_version exchange_types[].description exchange_types[].name
			listeners[].ip_address listeners[].node listeners[].protocol management_version node product_name product_version
			rabbitmq_version rates_mode`,
		"truth": `disable_stats enable_queue_totals exchange_types[].enabled is_op_policy_updating_enabled listeners[].tls`,
	})
}

func nodeShape() shape {
	return wanted(map[string]string{
		"list": `applications auth_mechanisms cluster_links config_files contexts enabled_plugins exchange_types log_files partitions`,
		"number": `channel_closed channel_closed_details.rate channel_created channel_created_details.rate connection_closed
			connection_closed_details.rate connection_created connection_created_details.rate fd_total fd_used gc_num mem_limit
			mem_used net_ticktime proc_used processors queue_created queue_created_details.rate queue_declared
			queue_declared_details.rate queue_deleted queue_deleted_details.rate run_queue sockets_used uptime`,
		"object": `channel_closed_details channel_created_details connection_closed_details connection_created_details queue_created_details
			queue_declared_details queue_deleted_details`,
		"string": `applications[].description applications[].name applications[].version auth_mechanisms[].description
			auth_mechanisms[].name erlang_full_version erlang_version exchange_types[].description exchange_types[].name
			mem_calculation_strategy name os_pid rabbitmq_version rates_mode type`,
		"truth": `auth_mechanisms[].enabled being_drained disk_free_alarm exchange_types[].enabled mem_alarm running`,
	})
}

func consumerShape() shape {
	return wanted(map[string]string{
		"number": `arguments.x-priority channel_details.number channel_details.peer_port prefetch_count`,
		"object": `arguments channel_details queue`,
		"string": `activity_status channel_details.connection_name channel_details.name channel_details.node channel_details.peer_host
			channel_details.user consumer_tag queue.name queue.vhost`,
		"truth": `ack_required active exclusive`,
	})
}

func connectionShape() shape {
	return wanted(map[string]string{
		"null": `peer_cert_issuer peer_cert_serial_number peer_cert_subject peer_cert_validity ssl_cipher ssl_hash ssl_key_exchange
			ssl_protocol`,
		"number": `channel_max channels connected_at frame_max peer_port port recv_cnt recv_oct recv_oct_details.rate send_cnt send_oct
			send_oct_details.rate send_pend timeout`,
		"object": `client_properties client_properties.capabilities recv_oct_details send_oct_details`,
		"string": `auth_mechanism client_properties.connection_name host name node peer_host protocol state type user user_provided_name
			user_who_performed_action vhost`,
		"truth": `client_properties.capabilities.basic.nack client_properties.capabilities.connection.blocked
			client_properties.capabilities.consumer_cancel_notify client_properties.capabilities.publisher_confirms ssl`,
	})
}

func channelShape() shape {
	return wanted(map[string]string{
		"number": `acks_uncommitted connection_details.peer_port consumer_count messages_unacknowledged messages_uncommitted
			messages_unconfirmed number prefetch_count`,
		"object": `connection_details`,
		"string": `connection_details.name connection_details.peer_host name node state user user_who_performed_action vhost`,
		"truth":  `confirm transactional`,
	})
}
