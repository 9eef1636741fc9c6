//! Memory behind dmabufs and on GPUs, by a stand-in for the makers' libraries: its memory has no address of this process, and
//! lies inside of larger allocations, so that a wrong offset is wrong data.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use results::model::RegisteredBy;
use testing::process::Call;
use testing::program::{Server, call};

/// A sweep whose every byte is checked.
const CHECKED: &str = "-d soft0 --timeout 18 --warmup 0 --verify --quiet";

/// A folder with the stand-in under the names of the libraries, which cargo builds beside the test programs.
fn libraries() -> &'static str {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let own = std::env::current_exe().unwrap();
        let library = own.with_file_name("libgpu_standin.so");
        assert!(library.is_file(), "no {}", library.display());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gpus");
        fs::create_dir_all(&folder).unwrap();
        for name in ["libcuda.so.1", "libamdhip64.so", "libhsa-runtime64.so.1"] {
            let link = folder.join(name);
            if !link.is_symlink() {
                symlink(&library, link).unwrap();
            }
        }
        folder
    });
    folder.to_str().unwrap()
}

/// A sweep beside GPUs with a fault.
fn beside_gpus(fault: &str, words: &str) -> Call {
    let call = call(&format!("{CHECKED} {words}"));
    call.env("LD_LIBRARY_PATH", libraries()).env("GPU_STANDIN_FAULT", fault)
}

#[test]
fn messages_in_a_gpus_memory_arrive_whole() {
    let words = "--op send,write,read,send-imm,write-imm --mr one,per-qp -q 3 -s 1,9000 -n 20 -t 8 -r 16 --offset 24";
    let places = "cuda:0,rocm:0,client=cuda:0,server=rocm:0,client=rocm:0+server=dmabuf";
    let result = beside_gpus("", &format!("{words} --memory-at {places}")).is_whole(100).result();
    let mut seen = Vec::new();
    for flow in result.cases.iter().flat_map(|case| &case.runs).flat_map(|run| &run.flows) {
        assert!(!flow.memory.is_empty());
        for memory in &flow.memory {
            assert_eq!(memory.registered_by, RegisteredBy::Dmabuf);
            seen.push((memory.node.as_str(), memory.place.as_str()));
        }
    }
    for end in [("client", "cuda:0"), ("server", "rocm:0"), ("server", "dmabuf")] {
        assert!(seen.contains(&end), "{end:?}");
    }
}

#[test]
fn memory_behind_a_dmabuf_holds_whole_messages_and_the_table_says_so() {
    let words = "--op send,write,read --memory-at dmabuf -q 2 -n 20 -t 8 -r 16";
    let ended = call(&format!("{CHECKED} {words}")).is_whole(3);
    let flow = &ended.result().cases[0].runs[0].flows[0];
    assert_eq!(flow.memory.len(), 2);
    assert!(flow.memory.iter().all(|end| end.place == "dmabuf" && !end.of.is_empty()));
}

#[test]
fn a_gpu_answers_pings_and_the_one_without_memory_of_its_own_is_registered_as_the_hosts() {
    let words = "--op send,write-imm --ping-pong -s 64 -n 20 --memory-at";
    let call = call(&format!("-d soft0 --timeout 18 --warmup 0 --quiet {words} cuda:auto"));
    let call = call
        .env("LD_LIBRARY_PATH", libraries())
        .env("GPU_STANDIN_GPUS", "0000:41:00.0,0000:42:00.0");
    let result = call.is_whole(2).result();
    let memory = &result.cases[0].runs[0].flows[0].memory[0];
    assert_eq!(
        (memory.place.as_str(), memory.of.as_str()),
        ("cuda:0", "Stand-in 0 at 0000:41:00.0")
    );
    let integrated =
        beside_gpus("integrated", "--op write -n 20 --memory-at cuda:0").is_whole(1).result();
    let of_host = &integrated.cases[0].runs[0].flows[0].memory[0];
    assert_eq!(of_host.registered_by, RegisteredBy::Address);
}

#[test]
fn what_a_gpu_does_not_do_is_refused_before_the_run() {
    for (words, says) in [
        ("--op fetch-add", &["cannot be used on atomic operations", "--memory-at ordinary"][..]),
        ("--inline 64", &["cannot be used with --inline"]),
        ("--op write --ping-pong", &["the CPU waits for a byte in memory"]),
        ("--memory-at cuda:7", &["there is no GPU cuda:7", "finds 1", "choose another number"]),
        ("--register peermem", &["soft0 cannot reach the memory of cuda:0", "use an RDMA adapter"]),
        (
            "--op write --against perftest",
            &["ib_write_bw has no --use_cuda and no --use_cuda_dmabuf", "build perftest with CUDA"],
        ),
        ("--register peermem --against perftest", &["ib_send_bw has no --use_cuda"]),
        ("--memory 2G", &["of memory on cuda:0", "is free there", "lower --memory"]),
    ] {
        let words = if words.contains("--memory-at") {
            words.to_owned()
        } else {
            format!("{words} --memory-at cuda:0")
        };
        let call = call(&format!("-d soft0 -n 10 --warmup 0 --quiet {words}"));
        call.env("LD_LIBRARY_PATH", libraries()).is_refused(says);
    }
    // The second case needs too much at the server, where nobody else can look; nothing has run then.
    let server =
        Server::embedded_by(call("serve -p 0 -d soft0").env("LD_LIBRARY_PATH", libraries()));
    let words = "-n 10 --warmup 0 --memory-at server=cuda:0 --memory 64K,2G";
    let refused = server.call(words).is_refused(&["of memory on cuda:0", "is free there"]);
    assert_eq!(refused.results(), [""; 0]);
    call("-d soft0 -n 10 --register peermem")
        .is_refused(&["--register has no effect without --memory-at cuda"]);
}

#[test]
fn what_fails_on_a_gpu_is_said_in_its_librarys_words() {
    for (fault, says) in [
        ("no-device", &["cuInit failed", "CUDA_ERROR_NO_DEVICE (100)", "/dev/nvidia*"][..]),
        ("no-export", &["cuMemGetHandleForAddressRange failed", "(801)", "--register peermem"]),
        ("lost:40", &["CUDA_ERROR_CONTEXT_IS_DESTROYED (709)"]),
    ] {
        beside_gpus(fault, "--op write -s 64 -n 500 -t 8 --memory-at cuda:0").fails(says);
    }
}
