;;; contexture-wire.el --- One message, one line  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The text form of Contexture's messages: one property list on one
;; line.  This file turns a message into a line and back; it knows
;; nothing of processes, calls or the meaning of a message.
;;
;; Three things that Emacs strings may hold do not travel: text
;; properties are dropped; raw bytes and lone surrogates, which are no
;; Unicode text, become U+FFFD and are counted; and a symbol with a
;; newline in its name is refused, since `prin1' has no way to print it
;; on one line.

;;; Code:

(require 'cl-lib)

(define-error 'contexture-error "Contexture")
(define-error 'contexture-unreadable "Not a message" 'contexture-error)

(defconst contexture--no-text
  (format "[%c-%c%c-%c%c-%c]" #xd800 #xdfff #x110000 #x3fff7f #x3fff80 #x3fffff)
  "Regexp for one character that UTF-8 cannot express.
These are the surrogates, what follows the last Unicode character,
and the raw bytes; the matcher wants a range of its own for those.")

(defvar contexture--replaced 0
  "How many characters the encoding in progress has replaced.")

(defun contexture--redact (line)
  "Return LINE, a message, without the key that it may carry."
  (if (string-search ":api-key \"" line)
      (replace-regexp-in-string ":api-key \"\\(?:[^\"\\\\]\\|\\\\.\\)*\""
                                ":api-key \"(hidden)\"" line t t)
    line))

(defun contexture--encode (message)
  "Return a pair (LINE . REPLACED) for MESSAGE, a property list.
LINE ends in a newline and has no other.  REPLACED counts the
characters that are no text and were replaced by U+FFFD.

A collection of garbage in the middle of this, for a large message,
costs more than all of it, so callers let it wait."
  (let* ((contexture--replaced 0)
         (print-escape-newlines t)
         (print-escape-control-characters nil)
         (print-escape-nonascii nil)
         (print-escape-multibyte nil)
         (print-circle nil)
         (print-gensym nil)
         (print-length nil)
         (print-level nil)
         (print-quoted nil)
         (print-integers-as-characters nil)
         (float-output-format nil)
         (line (prin1-to-string (contexture--plain message))))
    (when (string-search "\n" line)
      (signal 'contexture-error
              '("a symbol with a newline in its name cannot be sent")))
    (cons (concat line "\n") contexture--replaced)))

(defun contexture--decode (line)
  "Return the message that LINE, a string without its newline, holds.
Return nil for a comment or an empty line.  Signal
`contexture-unreadable' when LINE holds no message."
  (unless (string-match-p "\\`[ \t\r]*\\(?:;\\|\\'\\)" line)
    (let ((message (contexture--read line)))
      (unless (and (keywordp (car-safe message))
                   (cl-evenp (or (proper-list-p message) 1)))
        (contexture--unreadable line))
      message)))

(defun contexture--read (line)
  "Read the one datum of LINE, letting garbage wait meanwhile.
A collection in the middle of a large message costs more than the
reading."
  (condition-case nil
      (let ((gc-cons-threshold most-positive-fixnum)
            (read-circle nil))
        (car (read-from-string line)))
    (error (contexture--unreadable line))))

(defun contexture--unreadable (line)
  "Signal that LINE is not a message."
  (signal 'contexture-unreadable
          (list (truncate-string-to-width line 80 nil nil "..."))))

(defun contexture--plain (value)
  "Return VALUE with every string in it made plain text."
  (cond ((stringp value) (contexture--plain-string value))
        ((consp value) (contexture--plain-list value))
        ((vectorp value) (cl-map 'vector #'contexture--plain value))
        (t value)))

(defun contexture--plain-list (list)
  "Return a copy of LIST, proper or dotted, with plain strings."
  (let (result)
    (while (consp list)
      (push (contexture--plain (pop list)) result))
    (nconc (nreverse result) (and list (contexture--plain list)))))

(defun contexture--plain-string (string)
  "Return STRING without text properties and without what is no text.
Count the replaced characters in `contexture--replaced'."
  (let* ((text (if (or (next-property-change 0 string)
                       (and (> (length string) 0) (text-properties-at 0 string)))
                   (substring-no-properties string)
                 string))
         (multibyte (string-to-multibyte text)))
    (if (= (length multibyte) (string-bytes multibyte))
        text                            ; all ASCII: nothing to look for
      (contexture--replace-no-text multibyte))))

(defun contexture--replace-no-text (text)
  "Return TEXT with U+FFFD for each character that is no text."
  (if (string-match-p contexture--no-text text)
      (replace-regexp-in-string
       contexture--no-text
       (lambda (_) (cl-incf contexture--replaced) "\ufffd")
       text t t)
    text))

(provide 'contexture-wire)
;;; contexture-wire.el ends here
