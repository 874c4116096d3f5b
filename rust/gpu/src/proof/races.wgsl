// Who has written and read each element of the arrays that a dispatch writes, and of workgroup memory: four words of an element, the last
// writer, its epoch, the readers since, their epoch. An epoch of a workgroup ends with a barrier for that kind of memory; workgroups have
// none in common. The first words count races, and uses of elements that an array lacks, with the array and the element of one of each.

var<private> race_me: u32;          // group 512 + invocation + 1
var<private> race_group: u32;
var<private> race_noted: bool;      // whether the workgroup memory is
var<private> race_storage: u32;     // epochs
var<private> race_workgroup: u32;

const RACE_SOME: u32 = 511u;          // several of a group, with group 512
const RACE_ALL: u32 = 0xffffffffu;    // of several groups
const RACE_OUTSIDE: u32 = 3u;
const RACE_FIRST: u32 = 6u;

fn race_begin(group: u32, local: u32) {
    race_group = group;
    race_noted = group < race_sizes[0];
    race_me = group * 512u + local + 1u;
}

fn race_found(kind: u32, array: u32, at: u32) {
    atomicAdd(&race_words[kind], 1u);
    atomicStore(&race_words[kind + 1u], array);
    atomicStore(&race_words[kind + 2u], at);
}

fn race_inside(array: u32, at: u32, length: u32) -> bool {
    if at >= length {
        race_found(RACE_OUTSIDE, array, at);
    }
    return at < length;
}

// Whether what an invocation did in an epoch is before all that this one does, or is its own.
fn race_before(other: u32, then: u32, epoch: u32) -> bool {
    return other == 0u || other == race_me || (other / 512u == race_me / 512u && then < epoch);
}

fn race_read(array: u32, first: u32, at: u32, epoch: u32) {
    let to = RACE_FIRST + 4u * (first + at);
    if !race_before(atomicLoad(&race_words[to]), atomicLoad(&race_words[to + 1u]), epoch) {
        race_found(0u, array, at);
    }
    // invocations of a subgroup are here at once: each learns of the one before
    let other = atomicExchange(&race_words[to + 2u], race_me);
    if !race_before(other, atomicExchange(&race_words[to + 3u], epoch), epoch) {
        let readers = select(RACE_ALL, race_me / 512u * 512u + RACE_SOME, other / 512u == race_me / 512u);
        atomicStore(&race_words[to + 2u], readers);
    }
}

fn race_write(array: u32, first: u32, at: u32, epoch: u32) {
    let to = RACE_FIRST + 4u * (first + at);
    let other = atomicExchange(&race_words[to], race_me);
    let then = atomicExchange(&race_words[to + 1u], epoch);
    let reader = atomicExchange(&race_words[to + 2u], 0u);
    if !race_before(other, then, epoch) || !race_before(reader, atomicLoad(&race_words[to + 3u]), epoch) {
        race_found(0u, array, at);
    }
}

