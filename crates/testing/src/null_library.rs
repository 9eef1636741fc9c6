//! The null verbs library as the program's table: devices `null0`,
//! which completes every WR at once, and `loop0`, which moves bytes inside this process.

use verbs::VerbsLibrary;

/// The table; one for the process.
pub fn null_library() -> &'static VerbsLibrary {
    static NULL: VerbsLibrary = VerbsLibrary {
        name: "null-verbs",
        get_device_list: null_verbs::get_device_list,
        free_device_list: null_verbs::free_device_list,
        get_device_name: null_verbs::get_device_name,
        open_device: null_verbs::open_device,
        close_device: null_verbs::close_device,
        query_device: null_verbs::query_device,
        query_port: null_verbs::query_port,
        query_gid_ex: null_verbs::query_gid_ex,
        get_async_event: null_verbs::get_async_event,
        ack_async_event: null_verbs::ack_async_event,
        alloc_pd: null_verbs::alloc_pd,
        dealloc_pd: null_verbs::dealloc_pd,
        reg_mr: null_verbs::reg_mr,
        dereg_mr: null_verbs::dereg_mr,
        create_comp_channel: null_verbs::create_comp_channel,
        destroy_comp_channel: null_verbs::destroy_comp_channel,
        get_cq_event: null_verbs::get_cq_event,
        ack_cq_events: null_verbs::ack_cq_events,
        create_cq: null_verbs::create_cq,
        destroy_cq: null_verbs::destroy_cq,
        create_srq: null_verbs::create_srq,
        modify_srq: null_verbs::modify_srq,
        destroy_srq: null_verbs::destroy_srq,
        create_qp: null_verbs::create_qp,
        qp_to_qp_ex: null_verbs::qp_to_qp_ex,
        query_qp: null_verbs::query_qp,
        modify_qp: null_verbs::modify_qp,
        destroy_qp: null_verbs::destroy_qp,
        create_ah: null_verbs::create_ah,
        destroy_ah: null_verbs::destroy_ah,
    };
    &NULL
}
