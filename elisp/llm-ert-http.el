;;; llm-ert-http.el --- A web server for tests  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; An HTTP server in this Emacs, on the loopback interface: it reads
;; requests, and writes answers whole or in pieces.  It knows nothing about
;; models.  Each connection serves one request.

;;; Code:

(require 'llm-ert-core)
(eval-when-compile (require 'subr-x))

(defun llm-ert--http-listen (name function)
  "Listen as NAME, and call FUNCTION with each request.
A request is a property list of :process, :verb, :path, which includes the
query, :headers, an alist with names in lower case, and :body, which is
undecoded.  Return the process that listens."
  (llm-ert--listen
   name
   (lambda (process chunk)
     (let ((heard (concat (process-get process 'heard) chunk)))
       (process-put process 'heard heard)
       (when-let* ((start (and (not (process-get process 'asked))
                               (string-match "\r\n\r\n" heard)
                               (match-end 0)))
                   (head (llm-ert--http-head (substring heard 0 start)))
                   (body (llm-ert--http-body process (cdr head) heard start)))
         (process-put process 'asked t)
         (pcase-let ((`(,verb ,path) (split-string (car head) " ")))
           (funcall function (list :process process :verb verb :path path
                                   :headers (cdr head) :body body))))))))

(defun llm-ert--http-head (head)
  "Return (LINE . HEADERS) for HEAD, the beginning of a request or an answer.
HEADERS is an alist from names, in lower case, to values."
  (let ((lines (split-string head "\r\n" t)))
    (cons (car lines)
          (cl-loop for line in (cdr lines)
                   when (string-match ": *" line)
                   collect (cons (downcase (substring line 0 (match-beginning 0)))
                                 (string-trim (substring line (match-end 0))))))))

(defun llm-ert--header (headers name)
  "Return the value of NAME, in lower case, in HEADERS, or nil."
  (cdr (assoc name headers)))

(defun llm-ert--http-body (process headers heard start)
  "Return the body in HEARD, which begins at START, or nil if it is not whole.
If PROCESS expects \"100 Continue\" before it sends the body, as HEADERS
say, send that."
  (let ((length (string-to-number (or (llm-ert--header headers "content-length") "0"))))
    (when (and (string-prefix-p "100" (or (llm-ert--header headers "expect") ""))
               (= (length heard) start))
      (llm-ert--send process "HTTP/1.1 100 Continue\r\n\r\n"))
    (cond ((equal (llm-ert--header headers "transfer-encoding") "chunked")
           (llm-ert--http-unchunked (substring heard start)))
          ((>= (length heard) (+ start length))
           (substring heard start (+ start length))))))

(defun llm-ert--http-unchunked (bytes)
  "Return the body that BYTES has in chunks, or nil if it is not whole."
  (let ((from 0) chunks size)
    (while (and (eql (string-match "\\([0-9a-fA-F]+\\)[^\r\n]*\r\n" bytes from) from)
                (setq size (string-to-number (match-string 1 bytes) 16))
                (< 0 size)
                (<= (+ (match-end 0) size 2) (length bytes)))
      (push (substring bytes (match-end 0) (+ (match-end 0) size)) chunks)
      (setq from (+ (match-end 0) size 2)))
    (and (eql size 0) (apply #'concat (nreverse chunks)))))

(defun llm-ert--http-answer (process status body &optional type headers)
  "Answer PROCESS with STATUS, a number, and BODY, a text or bytes.
TYPE is its type, JSON if nil; HEADERS is an alist of more headers."
  (let ((bytes (encode-coding-string body 'utf-8)))
    (llm-ert--http-begin process status (or type "application/json")
                         (cons (cons "Content-Length" (number-to-string (length bytes)))
                               headers))
    (llm-ert--http-write process bytes)
    (llm-ert--http-close process)))

(defun llm-ert--http-begin (process status type &optional headers)
  "Begin the answer to PROCESS with STATUS, the TYPE of the body, and HEADERS.
Without a Content-Length among HEADERS, the body is sent in chunks."
  (let ((chunked (not (assoc "Content-Length" headers))))
    (process-put process 'chunked chunked)
    (llm-ert--send process
                   (format "HTTP/1.1 %d Answer\r\nContent-Type: %s\r\n%sConnection: close\r\n\r\n"
                           status type
                           (mapconcat (pcase-lambda (`(,name . ,value))
                                        (format "%s: %s\r\n" name value))
                                      (if chunked
                                          (cons '("Transfer-Encoding" . "chunked") headers)
                                        headers)
                                      "")))))

(defun llm-ert--http-write (process bytes)
  "Send BYTES as part of the body of the answer to PROCESS."
  (unless (string-empty-p bytes)
    (if (process-get process 'torn)
        (llm-ert--http-later process bytes)
      (llm-ert--http-piece process bytes))))

(defun llm-ert--http-piece (process bytes)
  "Send BYTES of the body to PROCESS now, as a chunk if it has those."
  (llm-ert--send process (if (process-get process 'chunked)
                             (format "%x\r\n%s\r\n" (length bytes) bytes)
                           bytes)))

(defun llm-ert--http-end (process)
  "End the answer to PROCESS, which is sent in chunks."
  (llm-ert--http-after process (lambda () (llm-ert--send process "0\r\n\r\n")))
  (llm-ert--http-close process))

(defun llm-ert--http-close (process)
  "Close the connection of PROCESS."
  (llm-ert--http-after process (lambda () (delete-process process))))

;;;; Torn answers

;; The body comes in scraps of a few bytes, each by itself, so that they end
;; in the middle of characters, lines and names.

(defconst llm-ert--scraps [1 2 3 5 1 7]
  "Numbers of bytes of the scraps in which a torn answer is sent, in turn.")

(defconst llm-ert--scrap-delay 0.001
  "Seconds between two scraps of a torn answer.")

(defun llm-ert--http-later (process bytes)
  "Send BYTES to PROCESS in scraps."
  (let ((from 0) (turn 0) scraps)
    (while (< from (length bytes))
      (let ((end (min (length bytes)
                      (+ from (aref llm-ert--scraps (mod turn (length llm-ert--scraps)))))))
        (push (substring bytes from end) scraps)
        (setq from end turn (1+ turn))))
    (dolist (scrap (nreverse scraps))
      (llm-ert--http-queue process (lambda () (llm-ert--http-piece process scrap))))))

(defun llm-ert--http-after (process function)
  "Call FUNCTION when everything was sent to PROCESS."
  (if (process-get process 'queue)
      (llm-ert--http-queue process function)
    (funcall function)))

(defun llm-ert--http-queue (process function)
  "Call FUNCTION after the functions that wait for PROCESS."
  (process-put process 'queue (append (process-get process 'queue) (list function)))
  (unless (process-get process 'pumped)
    (process-put process 'pumped t)
    (run-at-time llm-ert--scrap-delay nil #'llm-ert--http-pump process)))

(defun llm-ert--http-pump (process)
  "Call the next function that waits for PROCESS."
  (process-put process 'pumped nil)
  (when-let* ((queue (process-get process 'queue)))
    (process-put process 'queue (cdr queue))
    (funcall (car queue))
    (when (and (cdr queue) (process-live-p process))
      (process-put process 'pumped t)
      (run-at-time llm-ert--scrap-delay nil #'llm-ert--http-pump process))))

(provide 'llm-ert-http)
;;; llm-ert-http.el ends here
