// Package memory watches how much memory the process uses, against a limit that the
// machine or its container sets.
//
// What counts is what is in use: the heap of Go with what is not collected yet, stacks,
// and what the data folder's engine holds beside it. The resident size that the operating
// system tells would count pages that Go has freed and not returned, and so keep an alarm
// up long after the memory is free.
package memory
