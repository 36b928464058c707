//! System calls that neither mounts nor networks hold: a confined program gets an error, as on a system without them.
//!
//! Only what leads out is refused, or what no program needs and much of the kernel lies behind. Nobody is ended for
//! trying: runtimes ask for some of these to find out whether they are there.
use std::collections::BTreeMap;
use std::io;

use nix::libc;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// By the number of a call, when it is refused: always, or when all conditions of one of these rules hold.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The other numbers that a processor with 64 bits may know calls by (`__X32_SYSCALL_BIT`).
const SECOND_NUMBERS: Option<i64> = if cfg!(target_arch = "x86_64") { Some(0x4000_0000) } else { None };

/// `IOPRIO_WHO_USER` of `ioprio_set(2)`.
const IOPRIO_WHO_USER: u64 = 3;

/// Refuses them from here on, for this thread and for all that it starts. Calls by the numbers of another kind of
/// processor, as programs for 32 bits make them, end the program: their arguments lie elsewhere.
pub(super) fn refuse() -> io::Result<()> {
    let kinds = [
        (not_permitted().map_err(io::Error::other)?, libc::EPERM),
        (networks_without_a_namespace().map_err(io::Error::other)?, libc::EAFNOSUPPORT),
        // Its flags cannot be looked at. Where it is missing, clone(2) is called instead.
        (Rules::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS),
    ];
    for (rules, error) in kinds {
        let program = program(rules, error).map_err(io::Error::other)?;
        apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

fn program(mut rules: Rules, error: i32) -> Result<BpfProgram, BackendError> {
    if let Some(second) = SECOND_NUMBERS {
        let others: Rules = rules.iter().map(|(number, rules)| (number | second, rules.clone())).collect();
        rules.extend(others);
    }
    let refused = SeccompAction::Errno(error.unsigned_abs());
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?.try_into()
}

/// What is refused for what it would do.
fn not_permitted() -> Result<Rules, BackendError> {
    let always = [
        // Keys of the session lie in no namespace.
        libc::SYS_add_key,
        libc::SYS_keyctl,
        libc::SYS_request_key,
        // Does without a call what is refused here.
        libc::SYS_io_uring_setup,
        // Looks into the machine, where that is let to everybody.
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
    ];
    let mut rules: Rules = always.into_iter().map(|number| (number, Vec::new())).collect();
    let mut when = |number: i64, conditions: &[Condition]| -> Result<(), BackendError> {
        rules.entry(number).or_default().push(rule(conditions)?);
        Ok(())
    };
    // Who has control groups of its own may mount them, and end or freeze the loop, which is in the same group.
    let own_groups = flag(libc::CLONE_NEWCGROUP);
    when(libc::SYS_unshare, &[(0, Qword, MaskedEq(own_groups), own_groups)])?;
    when(libc::SYS_clone, &[(0, Qword, MaskedEq(own_groups), own_groups)])?;
    // Limits and priorities of other programs of the same user. A limit of none of processor time ends one.
    when(libc::SYS_prlimit64, &[(0, Dword, Ne, 0), (2, Qword, Ne, 0)])?;
    when(libc::SYS_setpriority, &[(1, Dword, Ne, 0)])?;
    when(libc::SYS_setpriority, &[(0, Dword, Eq, u64::from(libc::PRIO_USER))])?;
    when(libc::SYS_ioprio_set, &[(1, Dword, Ne, 0)])?;
    when(libc::SYS_ioprio_set, &[(0, Dword, Eq, IOPRIO_WHO_USER)])?;
    // A program that gives the user's rights to whoever starts it, left behind for somebody else. One that is made so from
    // the beginning is empty, and loses the mark with the first byte that is written.
    let gives_rights = u64::from(libc::S_ISUID);
    #[cfg(target_arch = "x86_64")]
    when(libc::SYS_chmod, &[(1, Dword, MaskedEq(gives_rights), gives_rights)])?;
    when(libc::SYS_fchmod, &[(1, Dword, MaskedEq(gives_rights), gives_rights)])?;
    for number in [libc::SYS_fchmodat, libc::SYS_fchmodat2] {
        when(number, &[(2, Dword, MaskedEq(gives_rights), gives_rights)])?;
    }
    Ok(rules)
}

/// Sockets of families that no network namespace keeps apart, such as those to the host of a virtual machine.
fn networks_without_a_namespace() -> Result<Rules, BackendError> {
    let kept_apart = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let others: Vec<Condition> = kept_apart.into_iter().map(|family| (0, Dword, Ne, flag(family))).collect();
    Ok(Rules::from([(libc::SYS_socket, vec![rule(&others)?])]))
}

/// Which argument, how much of it, and how it compares with what.
type Condition = (u8, SeccompCmpArgLen, SeccompCmpOp, u64);

fn rule(conditions: &[Condition]) -> Result<SeccompRule, BackendError> {
    let conditions = conditions.iter().cloned();
    SeccompRule::new(
        conditions
            .map(|(at, width, is, value)| SeccompCondition::new(at, width, is, value))
            .collect::<Result<_, _>>()?,
    )
}

fn flag(number: i32) -> u64 {
    u64::from(number.cast_unsigned())
}
