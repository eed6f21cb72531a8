;;; contexture-ert-exchange.el --- Conversations with a server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Conversations with Contexture's server that are recorded and played
;; again, and what can befall the server.

;;; Code:

(require 'contexture-rpc)
(require 'llm-ert)
(eval-when-compile (require 'subr-x))

;;; Recorded exchanges, played again

;; A recording holds one conversation with the server: lines from Emacs
;; after "> ", lines from the server after "< ", comments after ";".
;; Here recordings are read and written, and the server's part of one is
;; played over a socket on which Emacs itself listens.
;;
;; Two things differ between a recording and its replay.  The client
;; numbers its calls anew.  And the test's folder has a new name each
;; time, so a recording has a fixed name in its place.

(defconst contexture-ert--placeholder "/contexture-ert/"
  "Placeholder for the test's folder in a recorded exchange.")

(defconst contexture-ert--home-placeholder "/contexture-home/"
  "Placeholder for the folder of the test's server in a recorded exchange.")

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
  (unless (file-exists-p file)
    (error "There is no recording %s; make it with LLM_ERT_RECORD=1" file))
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8-unix) (number 0) entries)
      (insert-file-contents file)
      (dolist (line (split-string (buffer-string) "\n"))
        (cl-incf number)
        (pcase (and (>= (length line) 2) (substring line 0 2))
          ("> " (push (list 'sent (substring line 2) number) entries))
          ("< " (push (list 'received (substring line 2) number) entries))
          (_ (unless (string-match-p "\\`\\(?:;\\|\\'\\)" line)
               (error "%s:%d: a line must be empty or begin with \"> \", \"< \" or \";\""
                      file number)))))
      (contexture-ert--make-exchange
       :file file
       :entries (mapcar (lambda (entry)
                          (contexture-ert--translate
                           entry contexture-ert--placeholder directory))
                        (nreverse entries))))))

(defun contexture-ert--translate (entry from to)
  "Return ENTRY with the folder FROM replaced by TO in its line.
Both end in a slash; FROM without its slash is replaced, too.  If FROM or
TO is nil, return ENTRY itself."
  (if (and from to)
      (cons (car entry)
            (cons (replace-regexp-in-string
                   (concat (regexp-quote (directory-file-name from))
                           "\\(?:/\\|\\([^[:alnum:]._-]\\)\\|\\'\\)")
                   (lambda (match)
                     (if (string-suffix-p "/" match) to
                       (concat (directory-file-name to)
                               (substring match (length (directory-file-name from))))))
                   (cadr entry) t t)
                  (cddr entry)))
    entry))

(defun contexture-ert--decode (line)
  "Return the message that LINE holds, or nil if it holds none.
A line with something after the message holds none; the server refuses
such a line, too."
  (condition-case nil
      (when-let* ((message (contexture--decode line)))
        (and (string-blank-p (substring line (cdr (read-from-string line))))
             message))
    (contexture-unreadable nil)))

;;;; Playing

(defun contexture-ert--serve-exchange (exchange socket)
  "Listen on SOCKET, a file name, and play EXCHANGE to its client."
  (make-network-process
   :name "contexture replay" :server t :family 'local :service socket
   :coding 'utf-8-unix :noquery t :sentinel #'ignore
   :filter (lambda (process chunk)
             (let ((lines (split-string
                           (concat (process-get process 'contexture-ert-rest) chunk) "\n")))
               (process-put process 'contexture-ert-rest (car (last lines)))
               (dolist (line (butlast lines))
                 (contexture-ert--answer exchange process line))))))

(defun contexture-ert--answer (exchange process line)
  "Send PROCESS what follows LINE in EXCHANGE, or an error if LINE is not next.
Calls that the client makes by itself need not be in EXCHANGE."
  (let* ((entry (car (contexture-ert--exchange-entries exchange)))
         (message (contexture-ert--decode line))
         (id (plist-get message :id)))
    (cond
     ((contexture-ert--expected-p
       (and entry (cons (car entry)
                        (cons (contexture-ert--renumbered
                               (cadr entry) (contexture-ert--exchange-ids exchange))
                              (cddr entry))))
       line message)
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
                  (equal (contexture-ert--method-name message)
                         (contexture-ert--method-name recorded))
                  (null (contexture-ert--differences
                         (plist-get recorded :params)
                         (llm-ert--plist-without (plist-get message :params)
                                                        :request-key))))))))

(defun contexture-ert--keys (plist)
  "Return the keys of PLIST."
  (cl-loop for key in plist by #'cddr collect key))

(defun contexture-ert--greeting (message)
  "Return the answer to MESSAGE if it is a call that no recording has, else nil."
  (when (plist-get message :id)
    (pcase (plist-get message :method)
      ("ping" :pong)
      ("configure-provider" (list :name (plist-get (plist-get message :params) :name)))
      ("initialize" '(:name "contexture" :version "replay"))
      ("subscribe" (list :topics (plist-get (plist-get message :params) :topics))))))

(defun contexture-ert--go-on (exchange process)
  "Send PROCESS the lines of EXCHANGE up to the client's next line."
  (while (eq (caar (contexture-ert--exchange-entries exchange)) 'received)
    (let* ((entry (pop (contexture-ert--exchange-entries exchange)))
           (line (contexture-ert--renumbered
                  (cadr entry) (contexture-ert--exchange-ids exchange)))
           (say (lambda ()
                  (llm-ert--send process (concat line "\n"))
                  line)))
      (if (contexture-ert--exchange-stepwise exchange)
          (setf (contexture-ert--exchange-held exchange)
                (append (contexture-ert--exchange-held exchange) (list say)))
        (funcall say)))))

(defconst contexture-ert--id-regexps
  (let ((id "\\([^\" ()\\['`,#]+\\|\"\\(?:[^\"\\]\\|\\\\.\\)*\"\\)"))
    (list (concat "\\`(:id " id)
          (concat "\\`(\\(?::id [^ ]+ \\)?:method \"?\\(?:progress\\|cancel\\)\"? :params (:id "
                  id)))
  "Regexps for the beginning of a line, up to the id of a call.
The first is for the id of the message itself, the second for the id of
another call, as in a notification of its progress.")

(defconst contexture-ert--first-id 7000000
  "Number after which the ids of calls begin in recordings and replays.
It is high, so that a number in the data that is the id of a call can be
told from others.  In a recording, such a number is the sum of this one and
the number of the call.")

(defun contexture-ert--number-calls (connection)
  "Have CONNECTION number its calls after `contexture-ert--first-id'."
  ;; No function of jsonrpc.el sets it.
  (setf (slot-value connection '-next-request-id) contexture-ert--first-id))

(defun contexture-ert--renumbered (line ids)
  "Return LINE with the ids of calls replaced, as IDS says.
IDS is an alist from old ids to new ones.  Ids in the data are replaced,
too.  The rest of LINE stays as it is, byte for byte."
  (let ((head (cl-loop for regexp in contexture-ert--id-regexps
                       when (string-match regexp line)
                       collect (cons (match-beginning 1) (match-end 1))))
        (from 0))
    (concat
     (cl-loop for (start . end) in head
              for id = (substring line start end)
              for new = (cdr (assoc (read id) ids))
              concat (substring line from start)
              concat (if new (format "%S" new) id)
              do (setq from end))
     (replace-regexp-in-string
      "\\b7[0-9]\\{6\\}\\b"
      (lambda (digits) (contexture-ert--renumbered-datum digits ids))
      (substring line from) t t))))

(defun contexture-ert--renumbered-datum (digits ids)
  "Return DIGITS, renumbered by IDS if they are the id of a call in data."
  (let* ((first contexture-ert--first-id)
         (id (string-to-number digits))
         (recorded (cdr (assoc id ids)))
         (played (cdr (assoc (- id first) ids))))
    (cond ((and recorded (< recorded first)) (number-to-string (+ first recorded)))
          ((and played (> played first)) (number-to-string played))
          (t digits))))

(defun contexture-ert--say (process message)
  "Send MESSAGE, a property list, to PROCESS."
  (llm-ert--send process (car (contexture--encode message))))

(defun contexture-ert--otherwise (exchange entry line)
  "Return a message that Emacs sent LINE where EXCHANGE has ENTRY (or nil)."
  (let* ((line (contexture--redact line))
         (message (contexture-ert--decode line))
         (recorded (and entry (contexture-ert--decode (cadr entry))))
         (later (nth 2 (cl-find-if (lambda (entry)
                                     (contexture-ert--expected-p entry line message))
                                   (cdr (contexture-ert--exchange-entries exchange))))))
    (concat
     (contexture-ert--exchange-file exchange)
     (if entry
         (format ":%d: next comes %s" (nth 2 entry) (cadr entry))
       ": the recording ends here")
     (format ", but Emacs said %s" line)
     (cond
      (later (format "\nwhich the recording has in line %d" later))
      ((and recorded (equal (contexture-ert--method-name recorded)
                            (contexture-ert--method-name message)))
       (mapconcat (lambda (difference)
                    (pcase-let ((`(,path ,was ,is) difference))
                      (format "\n  %s: recorded %S, now %S"
                              (mapconcat #'symbol-name path " ") was is)))
                  (contexture-ert--differences
                   (plist-get recorded :params)
                   (llm-ert--plist-without (plist-get message :params)
                                                  :request-key))
                  ""))
      (t "")))))

(defun contexture-ert--method-name (message)
  "Return the name of the method that MESSAGE calls."
  (format "%s" (plist-get message :method)))

(defun contexture-ert--differences (was is &optional path)
  "Return where IS differs from WAS, as a list of (PATH WAS IS).
PATH is the list of keys that lead to them.  The order of keys makes no
difference, and a key whose value is nil counts as absent."
  (if (and (llm-ert--plist-p was) (llm-ert--plist-p is))
      (cl-loop for key in (delete-dups (append (contexture-ert--keys was)
                                               (contexture-ert--keys is) nil))
               append (contexture-ert--differences
                       (plist-get was key) (plist-get is key)
                       (append path (list key))))
    (unless (equal was is) (list (list path was is)))))

(defun contexture-ert--quiet-p ()
  "Return non-nil if no call waits to be sent or answered."
  (or (null contexture--connection)
      (and (null (oref contexture--connection outbox))
           (zerop (hash-table-count (oref contexture--connection unanswered))))))

;;; Write recordings that are the same twice

;; Makes a recording of the messages of a test.  What differs from run to
;; run is left out, numbered anew or put in order: request keys, ids of
;; calls, names of folders, and the order of answers to calls that were
;; made at the same time.

(defun contexture-ert--write-exchange (file entries folders)
  "Write ENTRIES as an exchange to FILE.
FOLDERS is an alist from a folder, or nil, to the placeholder that replaces
it.  The comments at the head of an older FILE are kept."
  (let ((remarks (if (not (file-readable-p file))
                     ""
                   (with-temp-buffer
                     (insert-file-contents file)
                     (while (looking-at ";") (forward-line))
                     (buffer-substring (point-min) (point)))))
        (coding-system-for-write 'utf-8-unix))
    (make-directory (file-name-directory (expand-file-name file)) t)
    (with-temp-file file
      (insert remarks)
      (dolist (entry entries)
        (pcase-dolist (`(,folder . ,placeholder) folders)
          (setq entry (contexture-ert--translate entry folder placeholder)))
        (insert (if (eq (car entry) 'sent) "> " "< ") (cadr entry) "\n")))))

(defconst contexture-ert--own-methods
  '("initialize" "subscribe" "configure-provider" "ping")
  "Methods that the client and the kit call by themselves; no recording has them.")

(defun contexture-ert--recordable (entries)
  "Return ENTRIES without what differs from run to run.
These are the calls that the client makes by itself; the request keys; the
ids; and the order of answers to calls that were made at the same time."
  (let* ((read (cl-loop for entry in entries
                        for message = (contexture-ert--decode (cadr entry))
                        when message collect (cons entry message)))
         (dropped (cl-loop for pair in read
                           when (member (contexture-ert--method-of pair)
                                        contexture-ert--own-methods)
                           collect (plist-get (cdr pair) :id))))
    (let ((pairs (contexture-ert--ordered
                  (cl-remove-if (lambda (pair)
                                  (member (or (plist-get (cdr pair) :id) 'none)
                                          dropped))
                                read)
                  (contexture-ert--topics read)))
          ids)
      (cl-loop for (entry . message) in pairs
               for id = (plist-get message :id)
               when (and id (eq (car entry) 'sent))
               do (push (cons id (1+ (length ids))) ids)
               collect (list (car entry)
                             (contexture-ert--renumbered
                              (contexture-ert--plain entry message) ids))))))

(defun contexture-ert--method-of (pair)
  "Return the name of the method that is called in PAIR, (ENTRY . MESSAGE)."
  (and (eq (caar pair) 'sent) (plist-get (cdr pair) :method)))

(defun contexture-ert--plain (entry message)
  "Return the line of ENTRY, which holds MESSAGE, without what timing decides.
Timing decides its request key, and whether a notification is about this
client's changes only: the server may join notifications."
  (cond
   ((plist-member (plist-get message :params) :request-key)
    (let ((params (llm-ert--plist-without
                   (plist-get message :params) :request-key)))
      (contexture--trim-right
       (car (contexture--encode
             (plist-put (copy-sequence message) :params params)))
       "\n")))
   ((equal (plist-get message :method) "context-changed")
    (replace-regexp-in-string " :own t))\\'" "))" (cadr entry)))
   (t (cadr entry))))

;;;; Order

;; A call that made no progress, and that nothing was said about before it
;; was answered, is answered at once: its answer does not depend on what
;; Emacs sent meanwhile.  What belongs to the others stays between the
;; messages between which it arrived, in the order of the calls.  The
;; server joins notifications as time has it: of those that calls sent
;; together brought about, only the last about each context stays, and none
;; to which the client subscribed only after the call.  They arrive among the
;; progress of a long call, or after its answer: they stay behind both.

(defun contexture-ert--ordered (pairs topics)
  "Return PAIRS, (ENTRY . MESSAGE), in an order that does not depend on time.
TOPICS are as from `contexture-ert--topics'."
  (let* ((owned (contexture-ert--last-news
                 (contexture-ert--wanted (contexture-ert--owned pairs) topics)
                 (contexture-ert--bursts pairs)))
         (pairs (contexture-ert--late-news-joined pairs owned))
         (long (cl-loop for pair in pairs
                        for method = (plist-get (cdr pair) :method)
                        when (member method '("progress" "cancel"))
                        collect (plist-get (plist-get (cdr pair) :params) :id)))
         result block)
    (cl-flet ((flush ()
                (setq result (append (reverse (contexture-ert--by-owner
                                               (nreverse block)))
                                     result)
                      block nil)))
      (dolist (pair pairs)
        (let ((id (plist-get (cdr pair) :id))
              (owner (cdr (assq pair owned))))
          (cond ((eq (caar pair) 'sent)
                 (flush)
                 (push pair result)
                 (unless (or (null id) (member id long))
                   (dolist (own owned) ; the answer, then what it brought about
                     (when (equal (cdr own) id) (push (car own) result)))))
                ((and (assq pair owned) (or (null owner) (member owner long)))
                 (push (cons pair owner) block)))))
      (flush))
    (nreverse result)))

(defun contexture-ert--late-news-joined (pairs owned)
  "Return PAIRS with each late notification moved behind what it is about.
It is about the answer to a call, or the progress by which a call asked
for an approval.  OWNED is an alist from pairs to the ids of their
calls."
  (let (late)
    (cl-loop for (pair . after) on pairs
             for id = (contexture-ert--answered pair)
             for news = (cl-loop for (other . owner) in owned
                                 when (and (or (and id (equal owner id))
                                               (contexture-ert--asked-by pair (cdr other)))
                                           (memq other after))
                                 collect other)
             unless (memq pair late) collect pair
             append (cl-set-difference news late)
             do (setq late (append news late)))))

(defun contexture-ert--news-p (message)
  "Return non-nil if MESSAGE, which was received, is neither answer nor progress."
  (not (or (plist-get message :id) (equal (plist-get message :method) "progress"))))

(defun contexture-ert--topics (pairs)
  "Return an alist from the id of each call in PAIRS to the topics at that time.
They are those to which the client had subscribed before the call."
  (let (topics)
    (cl-loop for pair in pairs
             for method = (contexture-ert--method-of pair)
             for message = (cdr pair)
             when (equal method "subscribe")
             do (setq topics (plist-get (plist-get message :params) :topics))
             when method collect (cons (plist-get message :id) topics))))

(defun contexture-ert--wanted (owned topics)
  "Return OWNED without notifications to which the client subscribed too late.
It may get one nevertheless, if it subscribes right after the call that the
notification belongs to.  OWNED is an alist from pairs to ids, and TOPICS
from ids to topics."
  (cl-remove-if (pcase-lambda (`((,_ . ,message) . ,owner))
                  (let ((method (plist-get message :method)))
                    (and owner method (not (equal method "progress"))
                         (not (member method (cdr (assoc owner topics)))))))
                owned))

(defun contexture-ert--bursts (pairs)
  "Return an alist from the id of each call in PAIRS to the number of its burst.
Calls between which nothing was received are one burst."
  (let ((number 0) last)
    (cl-loop for (entry . message) in pairs
             when (and (eq (car entry) 'sent) (not (eq last 'sent)))
             do (cl-incf number)
             do (setq last (car entry))
             when (and (eq last 'sent) (plist-get message :id))
             collect (cons (plist-get message :id) number))))

(defun contexture-ert--last-news (owned bursts)
  "Return OWNED with the answers first and without superseded notifications.
Of the notifications by one method about one context, the last in each burst
stays.  OWNED is an alist from pairs to ids, and BURSTS from ids to numbers."
  (let (answers news)
    (dolist (own owned)
      (let* ((message (cdar own))
             (key (and (contexture-ert--news-p message)
                       (list (plist-get message :method)
                             (plist-get (plist-get message :params) :manager)
                             (cdr (assoc (cdr own) bursts))))))
        (cond ((null key) (push own answers))
              ((cadr key) (setf (alist-get key news nil nil #'equal) own))
              (t (push (cons key own) news)))))
    (append (nreverse answers)
            (cl-sort (mapcar #'cdr news) #'<
                     :key (lambda (own) (cl-position own owned :test #'eq))))))

(defun contexture-ert--owned (pairs)
  "Return an alist from each received pair of PAIRS to the id of its call.
A notification belongs to the call with the same version.  Without such
a call, it belongs to an open call: the one that asked for the same
approval, has the method that the notification names, or is answered
next."
  (let (before)
    (cl-loop for (pair . after) on pairs
             when (eq (caar pair) 'received)
             collect (cons pair (contexture-ert--owner-of (cdr pair) before after))
             do (push pair before))))

(defun contexture-ert--owner-of (message before after)
  "Return the id of the call that MESSAGE belongs to, or nil.
BEFORE is what came before it, the newest first, and AFTER what follows."
  (let* ((params (plist-get message :params))
         (version (plist-get params :version))
         (open (cl-loop for pair in after
                        for id = (contexture-ert--answered pair)
                        for call = (and id (cl-find id before :test #'equal
                                                    :key #'contexture-ert--called))
                        when call collect call)))
    (cond ((plist-get message :id))
          ((equal (plist-get message :method) "progress") (plist-get params :id))
          ((contexture-ert--answered
            (and version (cl-find version (append before after) :test #'equal
                                  :key #'contexture-ert--version-of))))
          ((cl-some (lambda (pair) (contexture-ert--asked-by pair message))
                    (append before after)))
          (t (contexture-ert--called
              (or (cl-find (plist-get params :method) open :test #'equal
                           :key #'contexture-ert--method-of)
                  (car open)))))))

(defun contexture-ert--called (pair)
  "Return the id of the call that was sent as PAIR, (ENTRY . MESSAGE), or nil."
  (and (eq (caar pair) 'sent) (plist-get (cdr pair) :id)))

(defun contexture-ert--answered (pair)
  "Return the id of the call whose answer is PAIR, (ENTRY . MESSAGE), or nil."
  (and (eq (caar pair) 'received) (plist-get (cdr pair) :id)))

(defun contexture-ert--asked-by (pair news)
  "Return the id of the call that asked, in PAIR, for the approval in NEWS.
Return nil if PAIR is not the progress that asked for it."
  (let ((asked (plist-get (cdr pair) :params))
        (told (plist-get news :params)))
    (and (plist-get told :open)
         (equal (plist-get (cdr pair) :method) "progress")
         (equal (plist-get asked :approval) (plist-get told :approval))
         (plist-get asked :id))))

(defun contexture-ert--version-of (pair)
  "Return the version in the result of PAIR, (ENTRY . MESSAGE), or nil."
  (let ((result (plist-get (cdr pair) :result)))
    (and (llm-ert--plist-p result) (plist-get result :version))))

(defun contexture-ert--by-owner (block)
  "Return the pairs of BLOCK, a list of (PAIR . OWNER), sorted by their calls.
The notifications of a call come after its other messages."
  (cl-flet ((news-p (it) (contexture-ert--news-p (cdar it))))
    (mapcar #'car (cl-stable-sort
                   (append (cl-remove-if #'news-p block) (cl-remove-if-not #'news-p block))
                   #'< :key (lambda (it) (or (cdr it) most-positive-fixnum))))))

;;; Servers that die, stop or dawdle

;; What can befall the server of a test: it is killed, stopped, or slow.
;; Each function returns only when it is so.

(defun contexture-ert-server-pid ()
  "Return the process id of the test's server; start it if none runs.
In a batch Emacs this is not the id of the connection's process, which is
a shell that outlives the server."
  (unless (contexture-running-p) (contexture-request 'ping))
  (plist-get (oref contexture--connection info) :pid))

(defun contexture-ert-kill-server (&optional unnoticed)
  "Kill the test's server with SIGKILL, and wait until it is gone.
Also wait until Emacs has noticed, unless UNNOTICED is non-nil."
  (let ((pid (contexture-ert-server-pid))
        (process (oref contexture--connection process)))
    (signal-process pid 'SIGKILL)
    (contexture-ert--until
     (lambda ()
       (or (not (eql 0 (signal-process pid 0)))
           ;; It may wait to be reaped.
           (member (contexture-ert--process-state pid) '("Z" "X")))))
    (unless unnoticed
      (contexture-ert--until
       (lambda ()
         (accept-process-output nil 0.01)
         (not (eq process (oref contexture--connection process))))))))

(defun contexture-ert-stop-server ()
  "Stop the test's server with SIGSTOP, and wait until it has stopped.
It lives, but answers nothing until `contexture-ert-continue-server'."
  (let ((pid (contexture-ert-server-pid)))
    (signal-process pid 'SIGSTOP)
    (contexture-ert--until
     (lambda () (member (contexture-ert--process-state pid) '(nil "T"))))))

(defun contexture-ert-continue-server (&optional pid)
  "Let the stopped server of the test, or the process PID, go on."
  (let ((pid (or pid (contexture-ert-server-pid))))
    (signal-process pid 'SIGCONT)
    (contexture-ert--until
     (lambda () (not (equal (contexture-ert--process-state pid) "T"))))))

(defmacro contexture-ert-with-stopped-server (&rest body)
  "Run BODY while the test's server is stopped, then let the server go on."
  (declare (indent 0) (debug t))
  (let ((pid (make-symbol "pid")))
    `(let ((,pid (contexture-ert-server-pid)))
       (contexture-ert-stop-server)
       (unwind-protect (progn ,@body)
         (contexture-ert-continue-server ,pid)))))

(defun contexture-ert-slow-server (seconds)
  "Delay all messages of the test's server by SECONDS.
Nil makes it fast again, for the messages from then on."
  (contexture-ert-server-pid)           ; which starts it
  (set-process-filter
   (oref contexture--connection process)
   (if seconds
       (lambda (process chunk)
         (run-at-time seconds nil #'contexture--filter process chunk))
     #'contexture--filter)))

(defun contexture-ert--process-state (pid)
  "Return the state of process PID, a string such as \"T\", or nil if unknown."
  (alist-get 'state (process-attributes pid)))

(defun contexture-ert--until (predicate)
  "Wait until PREDICATE returns non-nil, at most five seconds on a quiet machine.
Nothing else runs meanwhile, unless PREDICATE itself waits."
  (let ((end (+ (float-time) (* 5 (llm-ert--patience)))))
    (while (not (funcall predicate))
      (when (> (float-time) end)
        (error "The test's server did not react to a signal in time")))))

(provide 'contexture-ert-exchange)
;;; contexture-ert-exchange.el ends here
