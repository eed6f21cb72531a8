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
;; Three things cannot be sent: text properties are dropped; raw bytes and
;; lone surrogates, which are not Unicode text, become U+FFFD and are
;; counted; and a symbol with a newline in its name is an error, since
;; `prin1' cannot print it on one line.

;;; Code:

(require 'cl-lib)

(define-error 'contexture-error "Contexture")
(define-error 'contexture-unreadable "Not a message" 'contexture-error)

(defconst contexture--no-text
  (format "[%c-%c%c-%c%c-%c]" #xd800 #xdfff #x110000 #x3fff7f #x3fff80 #x3fffff)
  "Regexp for one character that UTF-8 cannot express.
Such characters are the surrogates, everything after the last Unicode character,
and the raw bytes, which need their own range in a regexp.")

(defvar contexture--replaced 0
  "Number of characters replaced by the encoding in progress.")

(defun contexture--redact (line)
  "Return LINE, a message, with any API key hidden."
  (if (string-search ":api-key \"" line)
      (replace-regexp-in-string ":api-key \"\\(?:[^\"\\]\\|\\\\.\\)*\""
                                ":api-key \"(hidden)\"" line t t)
    line))

(defun contexture--encode (message)
  "Return a pair (LINE . REPLACED) for MESSAGE, a property list.
LINE ends in a newline and has no other.  REPLACED counts the
characters that are not text and were replaced by U+FFFD.

For a large message, a garbage collection in the middle of this costs
more than all the rest, so callers put it off."
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
         (line (prin1-to-string message)))
    (unless (contexture--plain-p line)
      (setq line (prin1-to-string (contexture--plain message))))
    (when (string-search "\n" line)
      (signal 'contexture-error
              '("a symbol with a newline in its name cannot be sent")))
    (cons (concat line "\n") contexture--replaced)))

(defun contexture--decode (line)
  "Return the message in LINE, a string without its newline.
Return nil for a comment or an empty line.  Signal
`contexture-unreadable' if LINE has no message."
  (unless (string-match-p "\\`[ \t\r]*\\(?:;\\|\\'\\)" line)
    (let ((message (contexture--read line)))
      (unless (and (keywordp (car-safe message))
                   (cl-evenp (or (proper-list-p message) 1)))
        (contexture--unreadable line))
      message)))

(defun contexture--read (line)
  "Read the one datum of LINE without collecting garbage.
For a large message, a collection costs more than the reading."
  (condition-case nil
      (let ((gc-cons-threshold most-positive-fixnum)
            (read-circle nil))
        (car (read-from-string line)))
    (error (contexture--unreadable line))))

(defun contexture--unreadable (line)
  "Signal that LINE is not a message."
  (signal 'contexture-unreadable
          (list (truncate-string-to-width line 80 nil nil "..."))))

(defun contexture--plain-p (line)
  "Return non-nil if LINE, a printed message, surely has plain strings only.
It may have others if it has the beginning of a string with properties,
an octal escape, as raw bytes are printed, or a character that is no text."
  (not (or (string-search "#(\"" line)
           (string-match-p "\\\\[0-7]" line)
           (and (/= (length line) (string-bytes line))
                (string-match-p contexture--no-text line)))))

(defun contexture--plain (value)
  "Return VALUE with all strings in it made plain text."
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
  "Return STRING as plain text, without text properties.
Count the characters replaced in `contexture--replaced'."
  (let* ((text (if (or (next-property-change 0 string)
                       (and (> (length string) 0) (text-properties-at 0 string)))
                   (substring-no-properties string)
                 string))
         (multibyte (string-to-multibyte text)))
    (if (= (length multibyte) (string-bytes multibyte))
        text                            ; all ASCII: nothing to look for
      (contexture--replace-no-text multibyte))))

(defun contexture--replace-no-text (text)
  "Return TEXT with U+FFFD for each character that is not text."
  (if (string-match-p contexture--no-text text)
      (replace-regexp-in-string
       contexture--no-text
       (lambda (_) (cl-incf contexture--replaced) "\ufffd")
       text t t)
    text))

(provide 'contexture-wire)
;;; contexture-wire.el ends here
