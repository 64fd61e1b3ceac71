// A Plan: what running a graph for given input shapes takes, as plain data. Made once per set of shapes, printed by
// `print_plan`, executed by the runtime.
//
// A slot is a value at run time. Slots that are alive for a part of the run share one arena; a view shares the storage
// of its root. Values whose size is only known while running, and everything that is not a plain tensor (strings,
// sequences, optionals), are `heap` slots.
//
// A plan is made in stages: plan_sequential() or plan_scheduled() gives steps and slots, runtime/choose_kernels.h picks
// a kernel and layouts for every step, insert_reorders() adds the steps that change layouts, insert_transfers() those
// that copy states between host and device, find_waits() says what waits for what where there are several streams,
// place_parts() and place_memory() find lifetimes and offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "autograph/graph.h"
#include "autograph/layout.h"
#include "autograph/schedule.h"
#include "autograph/verify.h"
#include "schedule/memory/memory_plan.h"

namespace autograph {

/// Names a slot of one plan.
using SlotIndex = uint32_t;
/// "Optional input not given."
inline constexpr SlotIndex kNoSlot = std::numeric_limits<SlotIndex>::max();

/// Where the storage of a slot is.
enum class Place : uint8_t {
  input,   ///< The caller's input number `index`; behind the graph's inputs come its states.
  weight,  ///< Plan::weights[index].
  arena,   ///< `offset` bytes into the arena.
  output,  ///< Written straight into the caller's output number `index`; behind the graph's outputs come its updates.
  heap,    ///< Made while running.
};

/// A value at run time.
struct Slot {
  ValueId value;                      ///< In the plan's graph; invalid for scratch.
  Type type;                          ///< Static for every place but heap and non-tensor inputs.
  Place place = Place::heap;          ///< Meaningful for roots; views follow their root.
  Layout layout = Layout::row_major;  ///< Row-major for every place but arena.
  uint32_t index = 0;                 ///< See Place.
  size_t offset = 0;                  ///< Of an arena slot.
  size_t bytes = 0;                   ///< 0 for heap slots.
  SlotIndex root = kNoSlot;           ///< The slot whose storage this one shares; itself when it has its own.
  size_t root_offset = 0;             ///< Where in that storage it begins.
  size_t row_bytes = 0;               ///< Of rows that lie apart in that storage: bytes of one; 0: it has no gaps.
  size_t row_stride = 0;              ///< From one such row to the next.
  SlotIndex source = kNoSlot;         ///< Of a view: the slot that was written; itself when it is no view.
  std::vector<SlotIndex> after = {};  ///< Of a view behind a barrier: slots whose steps come before its readers.
  uint32_t first_step = 0;            ///< Of the root: the step that writes it.
  uint32_t last_step = 0;             ///< Of the root: the last step that reads it or one of its views.
};

/// How a step runs.
enum class StepKind : uint8_t {
  fixed,     ///< All shapes known: the kernel is prepared once.
  dynamic,   ///< Shapes known while running: infer, allocate, run.
  evaluate,  ///< The op's own evaluate function: sequences, optionals, nested graphs.
};

/// Names of the kernels of transfers.
inline constexpr std::string_view kToDevice = "to device";
inline constexpr std::string_view kToHost = "to host";

/// One node to run, a change of layout, or a transfer: a copy of a state that waits in the memory of the host.
struct Step {
  NodeId node;  ///< Invalid for a reorder and a transfer: input 0 in the layout, or the memory, of output 0.
  StepKind kind = StepKind::fixed;
  std::string kernel;                     ///< Name of the kernel; filled in when kernels are chosen.
  std::vector<SlotIndex> inputs;          ///< kNoSlot = not given.
  std::vector<SlotIndex> outputs;         ///< One per output of the node.
  std::vector<SlotIndex> after;           ///< Slots that must have been written before it begins, besides its inputs.
  std::vector<SlotIndex> last_reads;      ///< Heap slots that may be dropped after this step.
  size_t scratch_bytes = 0;               ///< Working memory of the kernel.
  size_t scratch_offset = 0;              ///< Where it is in the arena.
  std::vector<uint32_t> in_place_inputs;  ///< Inputs whose storage output 0 may take, best first.
  std::vector<size_t> part_offsets;       ///< Where each input lies in output 0, when the step joins them; else empty.
  size_t joined_row_bytes = 0;            ///< Of output 0, when each of its rows has a piece of every input.
  size_t spaced_row_bytes = 0;            ///< Of output 0, when the kernel can write its rows apart.
  std::vector<size_t> piece_offsets;  ///< Where each output lies in input 0, when the step takes it apart; else empty.
  int in_place = -1;                  ///< The one whose storage it has; set by place_memory.
  uint32_t stage = 0;                 ///< All steps of a stage come before those of the next.
  uint32_t stream = 0;                ///< In its stage; steps of one stream run in order.
  int threads = 0;                    ///< That its kernel uses; 0: all of the run, in a stage with one stream.
  std::vector<uint32_t> waits;        ///< Steps of other streams of its stage that must be over first; see find_waits.
  bool is_awaited = false;            ///< Does a step of another stream wait for it?

  /// A transfer, too.
  bool is_reorder() const { return !node.is_valid(); }
  bool is_transfer() const { return is_reorder() && (kernel == kToDevice || kernel == kToHost); }
};

/// Steps [begin, end) of a plan, whose order is one in which they can also run one after the other.
struct PlanStage {
  uint32_t begin = 0;
  uint32_t end = 0;
  int threads = 0;                             ///< Of each stream; 0 where there is one.
  std::vector<std::vector<uint32_t>> streams;  ///< Steps of each stream in order; empty: one stream has them all.
};

/// An output of the graph, or the new value of a state, and the slot it comes from; `direct` outputs were written in
/// place, others are copied when all steps are over. What is `staged` lies where such a copy writes, and is taken aside
/// before the first of them.
struct PlanOutput {
  SlotIndex slot = kNoSlot;
  bool direct = false;
  bool staged = false;
};

/// An input of the plan and an output whose memory may be one: a state and its new value, or what the caller donates.
struct SharedMemory {
  uint32_t input = 0;
  uint32_t output = 0;
};

/// Everything about one way of running.
struct Plan {
  std::vector<Slot> slots;
  std::vector<Step> steps;
  std::vector<SlotIndex> inputs;     ///< The graph's inputs, then its states.
  std::vector<PlanOutput> outputs;   ///< The graph's outputs, then the new values of its states.
  std::vector<SharedMemory> shared;  ///< No input and no output twice. Right whether or not the memory is one.
  std::vector<Tensor> weights;
  std::vector<PlanStage> stages;  ///< Empty when all steps run one after the other. Stages of one stream are merged.
  size_t arena_bytes = 0;
  size_t sum_of_tensors_bytes = 0;
  size_t lower_bound_bytes = 0;
};

/// Nodes whose op is evaluated, but which have a kernel all the same: by number.
using PlannedNodes = std::unordered_set<uint32_t>;

/// Turns `graph`, whose types and known values have just been inferred, into steps in a sequential order. No kernels
/// and no offsets yet. `known` are values that need not be computed (see infer_types),
/// `planned` nodes are fixed steps.
Plan plan_sequential(const Graph& graph, const KnownValues& known, const PlannedNodes& planned = {});

/// The same in the stages and streams of `schedule`, which must be valid; `threads` are those of a run. Views and
/// values that are known have no steps; streams without steps are left out, and a stage with one stream left has all
/// threads. A step whose shape is only known while running, or that runs nested graphs, is a stage of its own.
Plan plan_scheduled(const Graph& graph, const KnownValues& known, const Schedule& schedule, int threads,
                    const PlannedNodes& planned = {});

/// Which layouts the kernel of a step reads and writes; missing ones are row-major.
struct StepLayouts {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
};

/// Gives slots the layouts in which they are written and adds reorder steps, at most one per slot and layout, in front
/// of the first step that wants another one and in its stream. `layouts` is parallel to the steps and grows with them.
/// What leaves the run and what is viewed under other dims becomes row-major.
void insert_reorders(Plan& plan, std::vector<StepLayouts>& layouts);

/// Leaves states in the memory of the host, by the number of the plan's input: steps copy each to the arena before it
/// is read first, and its new value back when it has been made. For states that find_cold_states() gives; before
/// find_waits().
void insert_transfers(Plan& plan, std::span<const uint32_t> inputs);

/// Finds what steps of other streams each step reads from, and waits for unless other waits imply it, and fills in
/// Plan::stages. After insert_reorders(). Does nothing to a plan without streams.
void find_waits(Plan& plan);

/// How often each slot is read: by steps, by the end of the run, and by views, each of which counts once.
std::vector<int> count_uses(const Plan& plan);

/// Lets tensors be written where a step with `part_offsets` will join them, and be read where a step with
/// `piece_offsets` would take them from.
void place_parts(Plan& plan);

/// Has outputs written beside the input whose memory they may share, and copied at the end, unless all reads of that
/// input come before in every order of the streams. After place_parts(), before place_memory().
void place_shared(Plan& plan);

/// Finds lifetimes and assigns arena offsets to slots and scratch, letting steps share storage as their
/// `in_place_inputs` allow. With several streams, memory is used again only where waits, streams and stages put all
/// that is done to the old tensor before the first write of the new one. Needs find_waits().
void place_memory(Plan& plan);

/// Checks, by itself, that memory holds what is read: whatever else a step writes there comes before the writer or
/// after the reader of a tensor, in every order in which the streams can run. Throws InternalError naming the steps.
void verify_memory(const Plan& plan);

/// The ten largest arena, output and heap slots as lines of text: "  4096 bytes f32[...] name (made by ...)".
std::string describe_largest(const Plan& plan, const Graph& graph);

/// The plan as text, one step a line.
std::string print_plan(const Plan& plan, const Graph& graph);

}  // namespace autograph
