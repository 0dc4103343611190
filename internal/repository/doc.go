// Package repository holds the tests of the repository itself: the rules that a reader of this code may rely on and
// that no compiler keeps. Which package may import which is here, and what code, tests and documents must not contain.
package repository
