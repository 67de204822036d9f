// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/dumps.h"
#include "model/json/log_prob_fields.h"

namespace gradcheck::report_json {

// The part of report-1 about dumped tensors (arms[].dumps); see report_fields.h.

void fields(auto& v, is<DumpFile> auto& file) {
  v("role", file.role);
  v("rank", file.rank);
  v("path", file.path);
  v("tensors", file.tensors);
  v("bytes", file.bytes);
}

void fields(auto& v, is<UlpRow> auto& row) {
  v("from", row.from);
  v("to", row.to);
  v("elements", row.elements);
}

void fields(auto& v, is<ClusterRow> auto& row) {
  v("clusters", row.clusters);
  v("tensors", row.tensors);
}

void fields(auto& v, is<DumpTensor> auto& row) {
  v("name", row.name);
  v("clusters", row.clusters);
  v("differing_elements", row.differing_elements);
  v("max_ulps", row.max_ulps);
  v("max_abs", row.max_abs);
  v("norm", row.norm);
  v("nan_elements", row.nan_elements);
  v("inf_elements", row.inf_elements);
}

void fields(auto& v, is<DumpReading> auto& reading) {
  v("against", reading.against);
  v("tolerance", reading.tolerance);
  v("files", reading.files);
  v("tensors", reading.tensors);
  v("differed", reading.differed);
  v("outside", reading.outside);
  v("differing_elements", reading.differing_elements);
  v("sign_of_zero_elements", reading.sign_of_zero_elements);
  v("nan_payload_elements", reading.nan_payload_elements);
  v("sign_changes", reading.sign_changes);
  v("nonfinite_elements", reading.nonfinite_elements);
  v("max_ulps", reading.max_ulps);
  v("max_norm", reading.max_norm);
  v("ulps", reading.ulps);
  v("clusters", reading.clusters);
  v("rows", reading.rows);
}

}  // namespace gradcheck::report_json
