;;; contexture-ert-http.el --- A web server for tests  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; An HTTP server in this Emacs, on the loopback interface: it reads
;; requests, and writes answers whole or in chunks.  It knows nothing about
;; models; contexture-ert-model.el does.  Each connection serves one request.

;;; Code:

(require 'cl-lib)
(require 'contexture-ert-wait)
(eval-when-compile (require 'subr-x))

(defun contexture-ert--http-listen (function)
  "Listen on a free port, and call FUNCTION with each request.
A request is a property list of :process, :verb, :path, and :body, which
is undecoded.  Return the process that listens."
  (make-network-process
   :name "contexture-ert-http" :server t :host "127.0.0.1" :service t
   :family 'ipv4 :coding 'binary :noquery t :sentinel #'ignore
   :filter (lambda (process chunk)
             (contexture-ert--http-hear process chunk function))))

(defun contexture-ert--http-hear (process chunk function)
  "Add CHUNK to what PROCESS said; call FUNCTION once it is a request."
  (let ((case-fold-search t)
        (heard (concat (process-get process 'heard) chunk)))
    (process-put process 'heard heard)
    (when-let* ((start (and (not (process-get process 'asked))
                            (string-match "\r\n\r\n" heard)
                            (match-end 0)))
                (body (contexture-ert--http-body process heard start)))
      (process-put process 'asked t)
      (string-match "\\`\\([A-Z]+\\) \\([^ ?]+\\)" heard)
      (funcall function (list :process process
                              :verb (match-string 1 heard)
                              :path (match-string 2 heard)
                              :body body)))))

(defun contexture-ert--http-body (process heard start)
  "Return the body in HEARD, which begins at START, or nil if it is not whole.
If PROCESS waits for a word before it sends the body, tell it to go on."
  (let* ((head (substring heard 0 start))
         (length (if (string-match "^content-length: *\\([0-9]+\\)" head)
                     (string-to-number (match-string 1 head))
                   0)))
    (when (and (string-match "^expect: *100" head) (= (length heard) start))
      (contexture-ert--send process "HTTP/1.1 100 Continue\r\n\r\n"))
    (and (>= (length heard) (+ start length))
         (substring heard start (+ start length)))))

(defun contexture-ert--http-answer (process status body)
  "Answer PROCESS with STATUS, a number, and BODY, a text in JSON."
  (let ((bytes (encode-coding-string body 'utf-8)))
    (contexture-ert--send
     process (format "HTTP/1.1 %d Answer\r\nContent-Type: application/json\r\n\
Content-Length: %d\r\nConnection: close\r\n\r\n%s"
                     status (length bytes) bytes))
    (delete-process process)))

(defun contexture-ert--http-begin (process)
  "Begin an answer to PROCESS that is a stream of events."
  (contexture-ert--send
   process "HTTP/1.1 200 Answer\r\nContent-Type: text/event-stream\r\n\
Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"))

(defun contexture-ert--http-chunk (process text)
  "Send TEXT to PROCESS as a part of its answer."
  (let ((bytes (encode-coding-string text 'utf-8)))
    (contexture-ert--send
     process (format "%x\r\n%s\r\n" (length bytes) bytes))))

(defun contexture-ert--http-end (process)
  "End the answer to PROCESS."
  (contexture-ert--send process "0\r\n\r\n")
  (delete-process process))

(provide 'contexture-ert-http)
;;; contexture-ert-http.el ends here
