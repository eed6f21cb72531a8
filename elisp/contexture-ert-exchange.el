;;; contexture-ert-exchange.el --- Recorded exchanges, played again  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A recording holds one conversation with the server: lines from Emacs
;; after "> ", lines from the server after "< ", comments after ";".
;; This file reads and writes recordings, and plays the server's part of
;; one over a socket on which Emacs itself listens.  It knows nothing
;; about tests; contexture-ert.el does.
;;
;; Two things differ between a recording and its replay.  The client
;; numbers its calls anew.  And the test's folder has a new name each
;; time, so a recording has a fixed name in its place.

;;; Code:

(require 'cl-lib)
(require 'contexture-wire)
(eval-when-compile (require 'subr-x))

(defconst contexture-ert--placeholder "/contexture-ert/"
  "Placeholder for the test's folder in a recorded exchange.")

(cl-defstruct (contexture-ert--exchange
               (:constructor contexture-ert--make-exchange) (:copier nil))
  "An exchange that is being played.
ENTRIES are those to come, each (DIRECTION LINE NUMBER); IDS maps the
recorded id of a call to the client's; PROBLEM says what differed from
the recording, or is nil.  If STEPWISE, functions that send the next
messages wait in HELD."
  file entries ids problem stepwise held)

;;;; Files

(defun contexture-ert--read-exchange (file directory)
  "Return the exchange in FILE, with DIRECTORY (or nil) as the test's folder."
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8-unix) (number 0) entries)
      (insert-file-contents file)
      (dolist (line (split-string (buffer-string) "\n"))
        (cl-incf number)
        (pcase (and (>= (length line) 2) (substring line 0 2))
          ("> " (push (list 'sent (substring line 2) number) entries))
          ("< " (push (list 'received (substring line 2) number) entries))
          (_ (unless (string-match-p "\\`\\(?:;\\|\\'\\)" line)
               (error "%s:%d: a line begins with \"> \", \"< \" or \";\""
                      file number)))))
      (contexture-ert--make-exchange
       :file file
       :entries (mapcar (lambda (entry)
                          (contexture-ert--translate
                           entry contexture-ert--placeholder directory))
                        (nreverse entries))))))

(defun contexture-ert--translate (entry from to)
  "Replace the folder FROM with TO in the line of ENTRY, unless one is nil."
  (if (and from to)
      (cons (car entry)
            (cons (string-replace from to (cadr entry)) (cddr entry)))
    entry))

(defun contexture-ert--write-exchange (file entries directory)
  "Write ENTRIES, recorded in DIRECTORY (or nil), as an exchange to FILE.
The comments at the head of an older FILE are kept."
  (let ((remarks (contexture-ert--remarks file))
        (coding-system-for-write 'utf-8-unix))
    (with-temp-file file
      (insert remarks)
      (dolist (entry entries)
        (pcase-let ((`(,direction ,line . ,_)
                     (contexture-ert--translate
                      entry directory contexture-ert--placeholder)))
          (insert (if (eq direction 'sent) "> " "< ") line "\n"))))))

(defun contexture-ert--remarks (file)
  "Return the comments at the head of FILE, or the empty string."
  (if (not (file-readable-p file))
      ""
    (with-temp-buffer
      (insert-file-contents file)
      (while (looking-at ";") (forward-line))
      (buffer-substring (point-min) (point)))))

(defun contexture-ert--decode (line)
  "Return the message that LINE holds, or nil if it holds none.
A line with something after the message holds none; the server refuses
such a line, too."
  (condition-case nil
      (when-let* ((message (contexture--decode line)))
        (and (string-blank-p (substring line (cdr (read-from-string line))))
             message))
    (contexture-unreadable nil)))

(defun contexture-ert--recordable (entries)
  "Return ENTRIES without the parts that differ from run to run.
These are the greeting, which has the version of the server; the last
ping, which ends a recording; and the request keys."
  (let* ((read (mapcar (lambda (entry)
                         (cons entry (contexture-ert--decode (cadr entry))))
                       entries))
         (ping (cl-find "ping" read :from-end t :test #'equal
                        :key #'contexture-ert--method-of))
         (dropped (cons (plist-get (cdr ping) :id)
                        (cl-loop for pair in read
                                 when (equal (contexture-ert--method-of pair)
                                             "server-info")
                                 collect (plist-get (cdr pair) :id)))))
    (cl-loop for (entry . message) in read
             when (and message
                       (not (member (or (plist-get message :id) 'none) dropped)))
             collect (contexture-ert--without-key entry message))))

(defun contexture-ert--method-of (pair)
  "Return the name of the method that is called in PAIR, (ENTRY . MESSAGE)."
  (and (eq (caar pair) 'sent) (plist-get (cdr pair) :method)))

(defun contexture-ert--without-key (entry message)
  "Return ENTRY, which holds MESSAGE, without its request key."
  (if (plist-member (plist-get message :params) :request-key)
      (let ((params (contexture-ert--plist-without
                     (plist-get message :params) :request-key)))
        (list 'sent (string-trim-right
                     (car (contexture--encode
                           (plist-put (copy-sequence message) :params params)))
                     "\n")))
    entry))

(defun contexture-ert--plist-without (plist key)
  "Return PLIST without KEY."
  (cl-loop for (each value) on plist by #'cddr
           unless (eq each key) nconc (list each value)))

;;;; Playing

(defun contexture-ert--serve-exchange (exchange socket)
  "Listen on SOCKET, a file name, and play EXCHANGE to its client."
  (make-network-process
   :name "contexture replay" :server t :family 'local :service socket
   :coding 'utf-8-unix :noquery t :sentinel #'ignore
   :filter (lambda (process chunk)
             (contexture-ert--hear exchange process chunk))))

(defun contexture-ert--hear (exchange process chunk)
  "Answer, from EXCHANGE, the lines that CHUNK from PROCESS completes."
  (let ((lines (split-string
                (concat (process-get process 'contexture-ert-rest) chunk) "\n")))
    (process-put process 'contexture-ert-rest (car (last lines)))
    (dolist (line (butlast lines))
      (contexture-ert--answer exchange process line))))

(defun contexture-ert--answer (exchange process line)
  "Send PROCESS the lines after LINE in EXCHANGE, or an error if it is not next.
Calls that the client makes by itself need not be in EXCHANGE."
  (let* ((entry (car (contexture-ert--exchange-entries exchange)))
         (message (contexture-ert--decode line))
         (id (plist-get message :id)))
    (cond
     ((contexture-ert--expected-p entry line message)
      (pop (contexture-ert--exchange-entries exchange))
      (when id
        (push (cons (plist-get (contexture-ert--decode (cadr entry)) :id) id)
              (contexture-ert--exchange-ids exchange)))
      (contexture-ert--go-on exchange process))
     ((contexture-ert--greeting message)
      (contexture-ert--say process (list :id id :result
                                         (contexture-ert--greeting message)))
      (contexture-ert--go-on exchange process))
     (t
      (let ((problem (contexture-ert--otherwise exchange entry line)))
        (unless (contexture-ert--exchange-problem exchange)
          (setf (contexture-ert--exchange-problem exchange) problem))
        (when id
          (contexture-ert--say
           process (list :id id :error (list :code -32603 :message problem)))))))))

(defun contexture-ert--expected-p (entry line message)
  "Return non-nil if ENTRY matches LINE, which holds MESSAGE (or nil)."
  (and (eq (car entry) 'sent)
       (or (equal (cadr entry) line)
           (let ((recorded (contexture-ert--decode (cadr entry))))
             (and message recorded
                  (eq (null (plist-get message :id))
                      (null (plist-get recorded :id)))
                  (equal (format "%s" (plist-get message :method))
                         (format "%s" (plist-get recorded :method)))
                  (contexture-ert--alike-p
                   (contexture-ert--plist-without (plist-get message :params)
                                                  :request-key)
                   (plist-get recorded :params)))))))

(defun contexture-ert--alike-p (one other)
  "Return non-nil if ONE and OTHER are equal but for the order of keys.
A key whose value is nil counts as absent."
  (if (and (contexture-ert--plist-p one) (contexture-ert--plist-p other))
      (cl-loop for key in (append (contexture-ert--keys one)
                                  (contexture-ert--keys other))
               always (contexture-ert--alike-p (plist-get one key)
                                               (plist-get other key)))
    (equal one other)))

(defun contexture-ert--plist-p (value)
  "Return non-nil if VALUE is a property list with keywords, perhaps empty."
  (and (proper-list-p value)
       (cl-evenp (length value))
       (cl-every #'keywordp (contexture-ert--keys value))))

(defun contexture-ert--keys (plist)
  "Return the keys of PLIST."
  (cl-loop for key in plist by #'cddr collect key))

(defun contexture-ert--greeting (message)
  "Return the answer to MESSAGE if it is a call that each connection makes."
  (when (plist-get message :id)
    (pcase (plist-get message :method)
      ("server-info" '(:name "contexture" :version "replay"))
      ("subscribe" (list :topics (plist-get (plist-get message :params) :topics))))))

(defun contexture-ert--go-on (exchange process)
  "Send PROCESS the lines of EXCHANGE up to the client's next line."
  (while (eq (caar (contexture-ert--exchange-entries exchange)) 'received)
    (let* ((entry (pop (contexture-ert--exchange-entries exchange)))
           (line (contexture-ert--renumbered
                  (cadr entry) (contexture-ert--exchange-ids exchange)))
           (say (lambda ()
                  (process-send-string process (concat line "\n"))
                  line)))
      (if (contexture-ert--exchange-stepwise exchange)
          (setf (contexture-ert--exchange-held exchange)
                (append (contexture-ert--exchange-held exchange) (list say)))
        (funcall say)))))

(defun contexture-ert--renumbered (line ids)
  "Return LINE with its id replaced by the one that IDS has for it.
The rest of LINE stays as it is, byte for byte."
  (if (string-prefix-p "(:id " line)
      (pcase-let* ((`(,id . ,end) (read-from-string line (length "(:id ")))
                   (pair (assoc id ids)))
        (if pair
            (format "(:id %S%s" (cdr pair) (substring line end))
          line))
    line))

(defun contexture-ert--say (process message)
  "Send MESSAGE, a property list, to PROCESS."
  (process-send-string process (car (contexture--encode message))))

(defun contexture-ert--otherwise (exchange entry line)
  "Return a message that Emacs sent LINE where EXCHANGE has ENTRY (or nil)."
  (format "%s%s, but Emacs said %s"
          (contexture-ert--exchange-file exchange)
          (if entry
              (format ":%d: next comes %s" (nth 2 entry) (cadr entry))
            ": the recording ends here")
          (contexture--redact line)))

(provide 'contexture-ert-exchange)
;;; contexture-ert-exchange.el ends here
