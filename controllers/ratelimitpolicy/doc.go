// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ratelimitpolicy reconciles RateLimitPolicies. It observes policies, their target workloads and Services, and what
// the pods have acknowledged; it decides the conditions of each policy and which workloads must restart; it writes the
// policy's status, the CA of its namespace, what the webhook selects, and an annotation of pod templates.
package ratelimitpolicy
