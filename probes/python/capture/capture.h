// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>  // NOLINT(modernize-deprecated-headers): a C header

// libgradcheck_capture: what the agent calls inside a user's job, through ctypes. It measures
// tensors with the same fused pass as native ranks and writes the same evidence lines
// (evidence.md); it knows nothing of torch and needs only libc. Python does no work per byte.
//
// Every function takes the handle and may be called from any thread (one lock a handle). None
// throws. Functions that return int32_t give 0 or a count on success and −1 on failure;
// gradcheck_error() then says why. A call that fails because of its arguments changes nothing.
// After a failed send and after gradcheck_bye the handle is closed: later calls fail at once and
// cost nothing, and copies are given back. In a child of fork() every call fails.
//
// Lines are buffered (64 KiB). gradcheck_flush, gradcheck_receive and gradcheck_bye send them.
#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)  // the library hides everything else

#define GRADCHECK_ABI 2  // 2: gradcheck_arrays

typedef struct gradcheck_capture gradcheck_capture;

// Where a tensor's elements lie. `sizes` and `strides` (in elements, not negative) have `ndim`
// entries, 64 at most; `strides` null means row-major. `data` null means absent, unless a size is
// 0: an empty tensor is there without data. A null gradcheck_view is absent too, also where a size
// would be 0. Absent tensors are recorded with the shape and dtype their slot had last, if any.
typedef struct {
  const void* data;
  const int64_t* sizes;
  const int64_t* strides;
  int32_t ndim;
  int32_t dtype;       // value of gradcheck::DType (model/dtype.h)
  int32_t unreadable;  // not 0: the tensor is there but must not be read. So is dtype `other`
} gradcheck_view;

// Values of gradcheck::Stage and gradcheck::TensorKind (model/record.h) are used as they are.

int32_t gradcheck_abi(void);

// Connects to the front's Unix socket; sends give up after `send_timeout_s`. Null on failure.
gradcheck_capture* gradcheck_open_socket(const char* path, double send_timeout_s);
// Writes lines to a new file instead (its folder must exist). Null on failure.
gradcheck_capture* gradcheck_open_file(const char* path);
void gradcheck_close(gradcheck_capture* capture);  // flushes; never fails
// Text of the last failure of this handle; with a null handle, of the last failed open of this
// thread. Valid until the same thread asks again.
const char* gradcheck_error(const gradcheck_capture* capture);

// Sends one record given as a JSON object on one line, without `seq`, which is put in here. What
// the front would refuse as JSON (NaN, a lone surrogate, more than 64 KiB) fails here and is not
// sent.
int32_t gradcheck_send(gradcheck_capture* capture, const char* json);
// Fills in the number of lines sent before it and flushes.
int32_t gradcheck_bye(gradcheck_capture* capture, int32_t status);
int32_t gradcheck_flush(gradcheck_capture* capture);

// A tensor that will be recorded, by model and name (2,048 bytes each at most): returns its slot,
// from 0; the same one for the same model and name. `tied_to` is the name of the parameter whose
// storage it shares, or null.
int32_t gradcheck_slot(gradcheck_capture* capture, const char* model, const char* name,
                       const char* tied_to);

// Measures what one backward brought and adds it to what the same slot got since
// gradcheck_close_local: sketches are added, l1, l2 and extrema become bounds, digests a digest of
// digests. An absent gradient adds nothing. `copy` ≠ 0 keeps a copy for payloads while it fits the
// budget; of several firings none is kept.
int32_t gradcheck_local(gradcheck_capture* capture, int32_t slot, const gradcheck_view* gradient,
                        int32_t copy);
// Writes a `local` record for each of the slots, all of one model (absent where nothing came), and
// the mark, and empties them.
int32_t gradcheck_close_local(gradcheck_capture* capture, int64_t step, int64_t micro,
                              const int32_t* slots, int32_t count);
// Empties them and writes nothing: for a backward that failed.
int32_t gradcheck_drop_local(gradcheck_capture* capture, const int32_t* slots, int32_t count);

// Measures and writes one tensor record. Stage start, after, next_forward: digest only. reduced: in
// full, and its digest is remembered. final: digest only where it equals the slot's last reduced
// one (same dtype and shape), else in full. `requires_grad`: 1, 0, or −1 to leave it out.
// `copy` ≠ 0 keeps a copy of the elements while they fit the budget. Fails where the slot's last
// record of this stage had this step and micro: two of them would spoil the whole run's evidence.
int32_t gradcheck_record(gradcheck_capture* capture, int32_t slot, int64_t step, int64_t micro,
                         int32_t stage, int32_t kind, const gradcheck_view* tensor,
                         int32_t requires_grad, int32_t copy);
// Closes a stage of a model: the mark carries the number of records written for it.
int32_t gradcheck_mark(gradcheck_capture* capture, const char* model, int64_t step, int64_t micro,
                       int32_t stage);

// Bytes of copies that may be kept; 0 (the default) keeps none.
void gradcheck_keep_budget(gradcheck_capture* capture, uint64_t bytes);
// Drops the copies of steps before `step`; their memory is used again.
void gradcheck_forget(gradcheck_capture* capture, int64_t step);
// Writes the kept copies of these slots at (step, micro, stage) to a safetensors file, keys
// "model/name". Stops at the first copy that `budget_bytes` has no room for. `written[i]` becomes 1
// for each slot in the file and 0 for the others. Returns the number of slots written (0: no file
// was made) or −1.
int32_t gradcheck_payload(gradcheck_capture* capture, const char* path, int64_t step, int64_t micro,
                          int32_t stage, const int32_t* slots, int32_t count, uint64_t budget_bytes,
                          uint8_t* written);

// Writes `count` arrays (64 at most) to a safetensors file, row-major, each under its key (256
// bytes at most), and the digest of them all (docs/evidence.md, "Log-probs") as 32 hexadecimal
// digits and a zero into `digest` (33 bytes). All must be readable. Records nothing: that is the
// caller's line.
int32_t gradcheck_arrays(gradcheck_capture* capture, const char* path, const char* const* keys,
                         const gradcheck_view* arrays, int32_t count, char* digest);

// Digest of one tensor as 32 hexadecimal digits and a zero into `out` (33 bytes).
int32_t gradcheck_digest(gradcheck_capture* capture, const gradcheck_view* tensor, char* out);
// 1 if every element is zero (−0 counts), 0 if not, −1 on failure. For f64 f32 f16 bf16.
int32_t gradcheck_is_zero(gradcheck_capture* capture, const gradcheck_view* tensor);

// Flushes, then takes the next line from the front into `out` (zero-terminated, without the
// newline), waiting at most `timeout_s` (0: not at all). Returns its length, 0 if there is none (at
// once where lines go to a file), −1 if the front has gone or the line is longer than `capacity` −
// 1 (it is dropped, the handle stays open).
int32_t gradcheck_receive(gradcheck_capture* capture, double timeout_s, char* out,
                          int32_t capacity);

// Seconds spent in this library so far.
double gradcheck_seconds(const gradcheck_capture* capture);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
