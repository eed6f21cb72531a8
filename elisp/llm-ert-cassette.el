;;; llm-ert-cassette.el --- Record a real server, and play it again  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `llm-ert-with-cassette' plays what a real server once said:
;;
;;     (llm-ert-with-cassette "tests/weather.cassette"
;;       :to "https://api.openai.com"
;;       (my-ask "How is the weather?"))
;;
;; The package under test asks `llm-ert-url', where this Emacs listens.
;; While a cassette is recorded, what comes there goes on to the real
;; server.  Later it is answered from the file, and nothing else goes to the
;; network.
;;
;; A cassette is text: lines of the client begin with ">", those of the
;; server with "<", and comments with ";".  What is private or differs from
;; day to day is not in it.

;;; Code:

(require 'llm-ert-http)
(require 'llm-ert-server)
(require 'network-stream)
(require 'url-parse)
(require 'url-vars)
(eval-when-compile (require 'subr-x))

(defcustom llm-ert-record (and (getenv "LLM_ERT_RECORD") t)
  "Non-nil means that tests record what a real server says, and do not play it.
The default is t if the environment variable LLM_ERT_RECORD is set."
  :type 'boolean
  :group 'llm-ert)

(defun llm-ert-record-again (selector)
  "Run the tests that SELECTOR matches, and record what servers say again.
SELECTOR is as in `ert'; interactively, it is a regexp for their names.
Read the difference before you commit it."
  (interactive (list (read-regexp "Record again the tests that match: ")))
  (let ((llm-ert-record t))
    (if noninteractive
        (ert-run-tests-batch selector)
      (ert selector))))

(cl-defstruct (llm-ert--cassette (:constructor llm-ert--make-cassette) (:copier nil))
  "A cassette that is being played or recorded.
ENTRIES are the entries to play, or those recorded so far, the newest
first; IDS maps ids to the texts in their place; PENDING is the number
of answers that the real server still owes; PROBLEM says what differs,
or is nil."
  file to command framing entries ids (pending 0) problem)

(defmacro llm-ert-with-cassette (file &rest body)
  "Run BODY with the answers of a real server that FILE has.
Fail if BODY makes a request that FILE does not have, or leaves one out;
the failure shows the difference.  The order of requests, and of keys in
JSON, does not count.  Meanwhile, connections to other machines are
refused.

With `llm-ert-record', ask the real server, and write FILE.  Nothing is
written if BODY fails.  Comments at the head of an older FILE stay.

BODY begins with keywords that say what the server is:

  :to \"https://HOST\"     a server that speaks HTTP.  `llm-ert-url' returns
                         the address to ask instead; paths stay as they are
  :to (HOST PORT)        a JSON-RPC server to connect to
  :command LIST          a JSON-RPC server that is a program
  :framing lines         JSON-RPC messages are lines; otherwise, they have
                         headers, as in jsonrpc.el

A client of JSON-RPC connects to `llm-ert-port', or starts what
`llm-ert-command' returns."
  (declare (indent 1) (debug (form &rest [keywordp form] body)))
  (pcase-let ((`(,keys . ,forms) (llm-ert--split-keys body)))
    `(llm-ert--call-with-cassette ,file (lambda () ,@forms) ,@keys)))

(cl-defun llm-ert--call-with-cassette (file function &key to command (framing 'headers))
  "Call FUNCTION with the cassette FILE.
TO, COMMAND and FRAMING are as in `llm-ert-with-cassette'."
  (let* ((http (stringp to))
         (cassette (llm-ert--make-cassette :file file :to to :command command
                                           :framing framing))
         (llm-ert--said (if http llm-ert--said nil))
         (record llm-ert-record))
    (unless (or to command)
      (error "Say which server it is: with :to or :command"))
    (unless record
      (setf (llm-ert--cassette-entries cassette) (llm-ert--read-cassette file http)))
    (llm-ert--with-peer
     (if http
         (llm-ert--http-listen "llm-ert-cassette"
                               (apply-partially (if record #'llm-ert--http-record
                                                  #'llm-ert--http-play)
                                                cassette))
       (llm-ert--listen "llm-ert-cassette"
                        (apply-partially (if record #'llm-ert--rpc-record
                                           #'llm-ert--rpc-play)
                                         cassette)))
     (lambda () (llm-ert--cassette-problem cassette))
     (lambda ()
       (prog1 (if record
                  (funcall function)
                (llm-ert--without-network cassette function))
         (if record
             (llm-ert--write-cassette cassette http)
           (llm-ert--check-cassette cassette)))))))

(defun llm-ert--check-cassette (cassette)
  "Fail unless CASSETTE was played to its end as recorded."
  (when-let* ((problem (llm-ert--cassette-problem cassette)))
    (ert-fail problem))
  (let ((grace 10))            ; a message may still be on its way
    (while (and (llm-ert--cassette-left cassette) (< 0 (cl-decf grace)))
      (accept-process-output nil 0.02)))
  (when-let* ((problem (llm-ert--cassette-problem cassette)))
    (ert-fail problem))
  (when-let* ((entry (llm-ert--cassette-left cassette)))
    (ert-fail (format "%s:%d: never asked:\n%s" (llm-ert--cassette-file cassette)
                      (llm-ert--entry-line entry) (llm-ert--entry-asked entry)))))

(defun llm-ert--cassette-left (cassette)
  "Return the first entry of CASSETTE that the client should still send, or nil."
  (cl-find-if (lambda (entry) (and (llm-ert--entry-asked entry)
                                   (not (llm-ert--entry-played entry))))
              (llm-ert--cassette-entries cassette)))

(cl-defstruct (llm-ert--entry (:constructor llm-ert--make-entry) (:copier nil))
  "A part of a cassette, which begins in LINE of the file.
Of HTTP, it is a request and its answer: ASKED is the request as text to
compare, STATUS, HEADERS and PIECES are the answer.  Of JSON-RPC, it is a
message: ASKED is that of the client as text to compare, or nil; TEXT is
the message; ID and METHOD are its own.  PLAYED is non-nil if it is done."
  line asked status headers pieces text id method played)

;;;; Refusing the network

(defun llm-ert--without-network (cassette function)
  "Call FUNCTION while connections to other machines are refused.
CASSETTE itself is the proxy of url.el for other machines, and refuses
its requests.  Other connections of Emacs signal an error.  Programs get
a proxy that is not there, since Emacs cannot answer a program while it
waits for that program."
  (let* ((proxy (llm-ert-host))
         (url-proxy-services `(("no_proxy" . "\\`\\(?:127\\.0\\.0\\.1\\|localhost\\)")
                               ("http" . ,proxy) ("https" . ,proxy)))
         (process-environment
          (append (cl-loop for name in '("http_proxy" "https_proxy" "all_proxy"
                                         "HTTP_PROXY" "HTTPS_PROXY" "ALL_PROXY")
                           collect (concat name "=http://127.0.0.1:1"))
                  process-environment))
         (open (symbol-function 'open-network-stream)))
    (cl-letf (((symbol-function 'open-network-stream)
               (lambda (name buffer host service &rest parameters)
                 (unless (member host '("localhost" "127.0.0.1" "::1"))
                   (llm-ert--refuse-network cassette (format "%s:%s" host service))
                   (error "A cassette refuses the connection to %s:%s" host service))
                 (apply open name buffer host service parameters))))
      (funcall function))))

(defun llm-ert--refuse-network (cassette target)
  "Have CASSETTE note that the test wanted to reach TARGET."
  (llm-ert--cassette-fails
   cassette (format "%s: the test went to the network, to %s; have it ask %s"
                    (llm-ert--cassette-file cassette) target (llm-ert-url))))

(defun llm-ert--cassette-fails (cassette problem)
  "Have CASSETTE note PROBLEM unless there was one before; return PROBLEM."
  (unless (llm-ert--cassette-problem cassette)
    (setf (llm-ert--cassette-problem cassette) problem))
  problem)

;;;; What is not recorded

(defvar llm-ert-hidden
  '(;; Keys and tokens.
    ("\\b\\(?:\\(?:sk\\|pk\\|rk\\|gh[opsru]\\|xox[abpr]\\|hf\\|glpat\\)[-_]\\|AIza\\|AKIA\\)\
[A-Za-z0-9_-]\\{16,\\}" . "[hidden]")
    ("\\bBearer +\\([^ \"\r\n]+\\)" . "[hidden]")
    ("[?&]\\(?:key\\|api[-_]?key\\|\\(?:access_\\)?token\\)=\\([^& \"\r\n]+\\)" . "[hidden]")
    ("\\\\*\"\\(?:api[-_]?key\\|authorization\\|password\\|\\(?:client[-_]?\\)?secret\
\\|\\(?:[a-z]+[-_]\\)?token\\)\\\\*\" *: *\\\\*\"\\([^\"\\]+\\)" . "[hidden]")
    ;; Dates and durations.
    ("\"\\(?:created\\|[a-z_]*_at\\|timestamp\\|[a-z_]*duration\\|[a-z]*[tT]ime\\)\" *: *\
\\([0-9.]+\\)" . "0")
    ("\"\\([12][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9:]+[0-9.]*\
\\(?:Z\\|[-+][0-9:]+\\)?\\)\"" . "2000-01-01T00:00:00Z")
    ;; What differs from one machine to the next.
    ("\"\\(?:processId\\|pid\\)\" *: *\\([0-9]+\\)" . "0")
    ("\"clientInfo\" *: *\\({[^}]*}\\)" . "{}"))
  "What a cassette has in place of private and passing things.
A list of (REGEXP . TEXT).  TEXT replaces what REGEXP matches, or its first
group.  Letter case makes no difference.")

(defconst llm-ert--hidden-headers
  '("authorization" "x-api-key" "api-key" "x-goog-api-key" "proxy-authorization" "cookie")
  "Names of headers of a request whose values a cassette hides.")

(defconst llm-ert--kept-headers
  '("accept" "content-type" "anthropic-version" "anthropic-beta" "openai-beta")
  "Names of the headers of a request that a cassette has.")

(defconst llm-ert--kept-answer-headers '("content-type" "location" "retry-after")
  "Names of the headers of an answer that a cassette has.")

(defconst llm-ert--shortest-secret 8
  "Length of the shortest value of a variable or header that counts as a secret.")

(defun llm-ert--secrets (&optional headers)
  "Return values that must be in no cassette: keys in the environment and HEADERS."
  (cl-remove-if
   (lambda (value) (< (length value) llm-ert--shortest-secret))
   (append (cl-loop for entry in process-environment
                    when (string-match
                          "\\`[^=]*_\\(?:KEY\\|TOKEN\\|SECRET\\|PASSWORD\\)=\\(.*\\)" entry)
                    collect (encode-coding-string (match-string 1 entry) 'utf-8))
           (cl-loop for (name . value) in headers
                    when (member name llm-ert--hidden-headers)
                    collect (replace-regexp-in-string "\\`[A-Za-z]+ " "" value)))))

(defconst llm-ert--placeholder "/llm-ert/"
  "What stands for the test's folder in a cassette.")

(defconst llm-ert--id-regexp
  "\"\\(?:id\\|[a-z_]*_id\\|[a-z]+Id\\|system_fingerprint\\)\\\\*\" *: *\\\\*\"\\([^\"\\]+\\)"
  "Regexp for an id in JSON.")

(defun llm-ert--made-up-p (id)
  "Return non-nil if ID looks as if a program made it up."
  (let ((last (car (last (split-string id "[_:.-]")))))
    (and (string-match-p "[0-9]" last) (string-match-p "[a-zA-Z]" last)
         (>= (length last) 8))))

(defun llm-ert--note-ids (cassette bytes)
  "Have CASSETTE choose what stands for each new id in BYTES."
  (let ((from 0))
    (while (string-match llm-ert--id-regexp bytes from)
      (setq from (match-end 0))
      (let ((id (match-string 1 bytes)))
        (when (and (llm-ert--made-up-p id)
                   (not (assoc id (llm-ert--cassette-ids cassette))))
          (push (cons id (format "%sid-%d"
                                 (if (string-match "\\`\\([a-zA-Z]+[_-]\\)[^-]*\\'" id)
                                     (match-string 1 id)
                                   "")
                                 (1+ (length (llm-ert--cassette-ids cassette)))))
                (llm-ert--cassette-ids cassette)))))))

(defun llm-ert--edits (cassette bytes &optional secrets)
  "Return what to replace in BYTES, a list of (START END TEXT) in order.
SECRETS are values to hide besides what `llm-ert-hidden' and the ids of
CASSETTE say."
  (llm-ert--note-ids cassette bytes)
  (let ((case-fold-search t) edits)
    (pcase-dolist (`(,regexp . ,text)
                   (append (mapcar (lambda (secret) (cons (regexp-quote secret) "[hidden]"))
                                   secrets)
                           llm-ert-hidden
                           (mapcar (pcase-lambda (`(,id . ,new))
                                     (cons (regexp-quote id) new))
                                   (llm-ert--cassette-ids cassette))
                           (when llm-ert-directory
                             (list (cons (regexp-quote llm-ert-directory)
                                         llm-ert--placeholder)
                                   (cons (regexp-quote (directory-file-name
                                                        llm-ert-directory))
                                         (directory-file-name llm-ert--placeholder))))))
      (let ((from 0))
        (while (string-match regexp bytes from)
          (let ((start (or (match-beginning 1) (match-beginning 0)))
                (end (or (match-end 1) (match-end 0))))
            (unless (cl-some (pcase-lambda (`(,other-start ,other-end ,_))
                               (and (< start other-end) (< other-start end)))
                             edits)
              (push (list start end text) edits))
            (setq from (max (1+ from) end))))))
    (sort edits #'car-less-than-car)))

(defun llm-ert--edited (pieces edits)
  "Return PIECES, texts that follow each other, after EDITS.
Where an edit reaches over the end of a piece, its text is in the first."
  (let ((offset 0) result)
    (dolist (piece pieces)
      (let ((end (+ offset (length piece))) (from offset) parts)
        (pcase-dolist (`(,edit-start ,edit-end ,text) edits)
          (when (and (< edit-start end) (< offset edit-end))
            (when (< from edit-start)
              (push (substring piece (- from offset) (- edit-start offset)) parts))
            (when (>= edit-start offset) (push text parts))
            (setq from (min end edit-end))))
        (push (substring piece (- from offset)) parts)
        (push (apply #'concat (nreverse parts)) result)
        (setq offset end)))
    (nreverse result)))

(defun llm-ert--clean (cassette bytes &optional secrets)
  "Return BYTES as CASSETTE has them, without SECRETS and what else it hides."
  (car (llm-ert--edited (list bytes) (llm-ert--edits cassette bytes secrets))))

(defun llm-ert--pretty (bytes)
  "Return BYTES as text; if they are JSON, in lines and with sorted keys."
  (let ((text (decode-coding-string bytes 'utf-8)))
    (condition-case nil
        (let ((json-encoding-pretty-print t) (json-encoding-default-indentation "  ")
              (json-encoding-object-sort-predicate #'string<))
          (json-encode (llm-ert--object text)))
      (error text))))

(defun llm-ert--comparable (text)
  "Return TEXT without the numbers of ids.
Ids that the client makes up differ from run to run."
  (replace-regexp-in-string "\\bid-[0-9]+\\b" "id-?" text))

;;;; A difference

(defconst llm-ert--diff-limit 400
  "Maximum number of lines, behind an equal beginning, to compare one by one.")

(defun llm-ert--diff (was is)
  "Return how IS differs from WAS, texts of lines, as diff would."
  (let* ((was (split-string was "\n")) (is (split-string is "\n"))
         (common (or (cl-mismatch was is :test #'equal) (length was)))
         (old (vconcat (nthcdr common was))) (new (vconcat (nthcdr common is)))
         (rows (length old)) (columns (length new)))
    (if (or (> rows llm-ert--diff-limit) (> columns llm-ert--diff-limit))
        (concat (mapconcat (lambda (line) (concat "-" line)) old "\n") "\n"
                (mapconcat (lambda (line) (concat "+" line)) new "\n"))
      (let ((best (make-vector (1+ rows) nil)) (row 0) (column 0)
            (lines (reverse (mapcar (lambda (line) (concat " " line))
                                    (last (butlast was rows) 3)))))
        (dotimes (index (1+ rows)) (aset best index (make-vector (1+ columns) 0)))
        (cl-loop for i from (1- rows) downto 0 do
                 (cl-loop for j from (1- columns) downto 0 do
                          (aset (aref best i) j
                                (if (equal (aref old i) (aref new j))
                                    (1+ (aref (aref best (1+ i)) (1+ j)))
                                  (max (aref (aref best (1+ i)) j)
                                       (aref (aref best i) (1+ j)))))))
        (while (or (< row rows) (< column columns))
          (cond ((and (< row rows) (< column columns)
                      (equal (aref old row) (aref new column)))
                 (push (concat " " (aref old row)) lines)
                 (cl-incf row) (cl-incf column))
                ((and (< row rows)
                      (or (= column columns)
                          (>= (aref (aref best (1+ row)) column)
                              (aref (aref best row) (1+ column)))))
                 (push (concat "-" (aref old row)) lines)
                 (cl-incf row))
                (t (push (concat "+" (aref new column)) lines)
                   (cl-incf column))))
        (string-join (llm-ert--near-changes (nreverse lines)) "\n")))))

(defun llm-ert--near-changes (lines)
  "Return LINES of a difference without those that are far from a change."
  (let* ((vector (vconcat lines))
         (near-p (lambda (index)
                   (cl-loop for at from (max 0 (- index 3))
                            to (min (1- (length vector)) (+ index 3))
                            thereis (memq (aref (aref vector at) 0) '(?- ?+))))))
    (cl-loop for line in lines
             for index from 0
             for near = (funcall near-p index)
             for before = t then was-near
             for was-near = near
             if near collect line
             else if before collect "...")))

(defun llm-ert--unlike (cassette asked entry)
  "Return that CASSETTE has no ASKED, a text; ENTRY, or nil, is most like it."
  (llm-ert--cassette-fails
   cassette
   (if entry
       (format "%s:%d: recorded (-), but the client sent (+):\n%s"
               (llm-ert--cassette-file cassette) (llm-ert--entry-line entry)
               (llm-ert--diff (llm-ert--entry-asked entry) asked))
     (format "%s: nothing is left, but the client sent:\n%s"
             (llm-ert--cassette-file cassette) asked))))

;;;; Files

(defun llm-ert--cassette-head (file)
  "Return the comments at the head of FILE, if it exists."
  (if (not (file-readable-p file)) ""
    (with-temp-buffer
      (let ((coding-system-for-read 'utf-8-unix))
        (insert-file-contents file))
      (while (looking-at ";") (forward-line))
      (buffer-substring (point-min) (point)))))

(defun llm-ert--write-cassette (cassette http)
  "Write what CASSETTE has recorded, with HTTP or JSON-RPC messages."
  (llm-ert-wait-until (lambda () (zerop (llm-ert--cassette-pending cassette)))
                      :timeout (* 30 llm-ert-timeout)
                      :message "the real server has not answered")
  (when-let* ((problem (llm-ert--cassette-problem cassette)))
    (ert-fail problem))
  (let* ((file (llm-ert--cassette-file cassette))
         (entries (or (reverse (llm-ert--cassette-entries cassette))
                      (ert-fail (list 'nothing-to-record file))))
         (text (concat (llm-ert--cassette-head file)
                       (mapconcat (if http #'llm-ert--http-entry-text
                                    #'llm-ert--rpc-entry-text)
                                  entries ""))))
    (dolist (secret (llm-ert--secrets))
      (when (string-search secret (encode-coding-string text 'utf-8))
        (error "%s would have a secret of the environment; see `llm-ert-hidden'" file)))
    (make-directory (file-name-directory (expand-file-name file)) t)
    (let ((coding-system-for-write 'utf-8-unix))
      (write-region text nil file nil 'silent))))

(defun llm-ert--read-cassette (file http)
  "Return the entries of FILE, a cassette with HTTP or JSON-RPC messages."
  (unless (file-exists-p file)
    (error "There is no cassette %s; make it with LLM_ERT_RECORD=1 or `llm-ert-record-again'"
           file))
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8-unix) entries)
      (insert-file-contents file)
      (while (not (eobp))
        (cond ((looking-at "\\(?:;\\|$\\)") (forward-line))
              ((looking-at (if http ">" "[<>] ")) (push (if http (llm-ert--read-http-entry)
                                                          (llm-ert--read-rpc-entry))
                                                        entries))
              (t (error "%s:%d: a line must be empty or begin with \">\", \"<\" or \";\""
                        file (line-number-at-pos)))))
      (nreverse entries))))

(defun llm-ert--prefixed (prefix text)
  "Return TEXT with PREFIX before each line."
  (concat (mapconcat (lambda (line) (string-trim-right (concat prefix line)))
                     (split-string text "\n") "\n")
          "\n"))

(defun llm-ert--read-prefixed (prefix)
  "Return the lines at point that begin with PREFIX, without it; go behind them."
  (let (lines)
    (while (looking-at (concat (regexp-quote prefix) "\\(?: \\(.*\\)\\)?$"))
      (push (or (match-string 1) "") lines)
      (forward-line))
    (string-join (nreverse lines) "\n")))

;;;; HTTP

(defun llm-ert--http-asked (cassette request)
  "Return REQUEST as text that CASSETTE compares."
  (let ((secrets (llm-ert--secrets (plist-get request :headers))))
    (decode-coding-string
     (concat
      (llm-ert--clean cassette (format "%s %s" (plist-get request :verb)
                                       (plist-get request :path))
                      secrets)
      "\n"
      (mapconcat (pcase-lambda (`(,name . ,value))
                   (cond ((member name llm-ert--hidden-headers)
                          (concat name ": [hidden]\n"))
                         ((member name llm-ert--kept-headers)
                          (format "%s: %s\n" name (llm-ert--clean cassette value secrets)))
                         (t "")))
                 (sort (copy-sequence (plist-get request :headers))
                       (lambda (a b) (string< (car a) (car b))))
                 "")
      (unless (string-empty-p (plist-get request :body))
        (concat "\n" (encode-coding-string
                      (llm-ert--pretty
                       (llm-ert--clean cassette (plist-get request :body) secrets))
                      'utf-8))))
     'utf-8)))

(defun llm-ert--http-entry-text (entry)
  "Return ENTRY as text of a cassette."
  (concat
   (llm-ert--prefixed "> " (string-trim-right (llm-ert--entry-asked entry)))
   (llm-ert--prefixed
    "< " (string-trim-right
          (format "%d\n%s" (llm-ert--entry-status entry)
                  (mapconcat (pcase-lambda (`(,name . ,value)) (format "%s: %s\n" name value))
                             (llm-ert--entry-headers entry) ""))))
   (mapconcat (lambda (piece) (concat "<< " (llm-ert--piece-text piece) "\n"))
              (llm-ert--entry-pieces entry) "")
   "\n"))

(defun llm-ert--piece-text (piece)
  "Return PIECE, bytes, as a Lisp string in one line."
  (let* ((text (decode-coding-string piece 'utf-8-unix))
         (whole (not (cl-some (lambda (char) (> char #x10ffff)) text)))
         (print-escape-newlines t) (print-escape-control-characters t)
         (print-escape-nonascii (not whole)))
    (prin1-to-string (if whole text piece))))

(defun llm-ert--read-http-entry ()
  "Return the entry of HTTP at point, and go behind it."
  (let* ((line (line-number-at-pos))
         (asked (llm-ert--read-prefixed ">"))
         (head (split-string (llm-ert--read-prefixed "<") "\n"))
         pieces)
    (while (looking-at "<< ")
      (goto-char (match-end 0))
      ;; Reading what nests deep would end Emacs.
      (unless (eq (char-after) ?\")
        (error "Line %d of the cassette: a piece must be a string" (line-number-at-pos)))
      (push (encode-coding-string (read (current-buffer)) 'utf-8-unix) pieces)
      (forward-line))
    (llm-ert--make-entry
     :line line :asked asked :status (string-to-number (car head))
     :headers (cdr (llm-ert--http-head (concat "\r\n" (string-join (cons "-" (cdr head)) "\r\n"))))
     :pieces (nreverse pieces))))

(defun llm-ert--http-play (cassette request)
  "Answer the HTTP REQUEST from CASSETTE."
  (let* ((process (plist-get request :process))
         (verb (plist-get request :verb)) (path (plist-get request :path)))
    (if (or (equal verb "CONNECT") (not (string-prefix-p "/" path)))
        (llm-ert--http-answer process 403 (json-encode
                                           (list :error (llm-ert--refuse-network
                                                         cassette path))))
      (let* ((asked (llm-ert--http-asked cassette request))
             (to-come (cl-remove-if #'llm-ert--entry-played
                                    (llm-ert--cassette-entries cassette)))
             (entry (cl-find (llm-ert--comparable (string-trim-right asked)) to-come
                             :test #'equal
                             :key (lambda (it)
                                    (llm-ert--comparable (llm-ert--entry-asked it))))))
        (if (not entry)
            (llm-ert--http-answer
             process 500
             (json-encode (list :error
                                (list :message (llm-ert--unlike cassette asked
                                                                (car to-come))))))
          (setf (llm-ert--entry-played entry) t)
          (llm-ert--http-begin process (llm-ert--entry-status entry)
                               (or (llm-ert--header (llm-ert--entry-headers entry)
                                                    "content-type")
                                   "text/plain")
                               (cl-remove "content-type" (llm-ert--entry-headers entry)
                                          :key #'car :test #'equal))
          (dolist (piece (llm-ert--entry-pieces entry))
            (llm-ert--http-queue process (lambda () (llm-ert--http-piece process piece))))
          (llm-ert--http-end process))))))

(defun llm-ert--http-record (cassette request)
  "Ask the real server of CASSETTE the HTTP REQUEST, and answer what it says."
  (let* ((url (url-generic-parse-url (llm-ert--cassette-to cassette)))
         (tls (equal (url-type url) "https"))
         (client (plist-get request :process))
         (server (open-network-stream
                  "llm-ert-real" nil (url-host url) (url-port url)
                  :type (if tls 'tls 'plain) :coding 'binary))
         (answer (list :head nil :pieces nil)))
    (cl-incf (llm-ert--cassette-pending cassette))
    (set-process-query-on-exit-flag server nil)
    (set-process-coding-system server 'binary 'binary)
    (set-process-filter
     server (lambda (_ chunk)
              (process-put server 'heard (concat (process-get server 'heard) chunk))
              (llm-ert--http-relay server client answer nil)))
    (set-process-sentinel
     server (lambda (_ _)
              (unless (process-live-p server)
                (llm-ert--http-relay server client answer t)
                (llm-ert--http-recorded cassette request answer)
                (llm-ert--http-end client))))
    (process-send-string
     server
     (concat
      (format "%s %s%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: %d\r\n"
              (plist-get request :verb)
              (string-remove-suffix "/" (or (url-filename url) ""))
              (plist-get request :path)
              (if (member (url-port url) '(80 443)) (url-host url)
                (format "%s:%d" (url-host url) (url-port url)))
              (length (plist-get request :body)))
      (mapconcat (pcase-lambda (`(,name . ,value))
                   (if (member name '("host" "connection" "accept-encoding" "expect"
                                      "content-length" "transfer-encoding"))
                       ""
                     (format "%s: %s\r\n" name value)))
                 (plist-get request :headers) "")
      "\r\n" (plist-get request :body)))))

(defun llm-ert--http-relay (server client answer ended)
  "Pass on to CLIENT what SERVER said, and collect it in ANSWER.
ENDED is non-nil if SERVER says no more."
  (let ((heard (or (process-get server 'heard) "")))
    (when (and (not (plist-get answer :head)) (string-match "\r\n\r\n" heard))
      (let* ((end (match-end 0))
             (head (llm-ert--http-head (substring heard 0 end))))
        (setq heard (substring heard end))
        (plist-put answer :head head)
        (llm-ert--http-begin client (string-to-number (nth 1 (split-string (car head))))
                             (or (llm-ert--header (cdr head) "content-type") "text/plain")
                             (llm-ert--kept (cdr head) '("location" "retry-after")))))
    (when-let* ((head (plist-get answer :head)))
      (let* ((chunked (equal (llm-ert--header (cdr head) "transfer-encoding") "chunked"))
             (piece t))
        (while (setq piece
                     (if chunked
                         (and (eql 0 (string-match "\\([0-9a-fA-F]+\\)[^\r\n]*\r\n" heard))
                              (let* ((start (match-end 0))
                                     (end (+ start (string-to-number (match-string 1 heard)
                                                                     16))))
                                (and (<= (+ end 2) (length heard)) (< start end)
                                     (prog1 (substring heard start end)
                                       (setq heard (substring heard (+ end 2)))))))
                       (unless (string-empty-p heard)
                         (prog1 heard (setq heard "")))))
          (plist-put answer :pieces (cons piece (plist-get answer :pieces)))
          (llm-ert--http-write client piece))
        ;; The sentinel, which runs at once, must not take it again.
        (process-put server 'heard heard)
        (when (and (not ended) (llm-ert--http-whole-p answer chunked heard))
          (delete-process server))))))

(defun llm-ert--http-whole-p (answer chunked heard)
  "Return non-nil if ANSWER has its whole body.
CHUNKED says that it comes in chunks, of which HEARD is the rest."
  (if chunked (string-prefix-p "0\r\n" heard)
    (when-let* ((length (llm-ert--header (cdr (plist-get answer :head)) "content-length")))
      (>= (apply #'+ (mapcar #'length (plist-get answer :pieces)))
          (string-to-number length)))))

(defun llm-ert--kept (headers names)
  "Return those of HEADERS that are among NAMES, in the order of NAMES."
  (cl-loop for name in names
           for header = (assoc name headers)
           when header collect header))

(defun llm-ert--http-recorded (cassette request answer)
  "Add REQUEST and its ANSWER, which is whole, to CASSETTE."
  (cl-decf (llm-ert--cassette-pending cassette))
  (let ((head (plist-get answer :head))
        (pieces (reverse (plist-get answer :pieces)))
        (asked (llm-ert--http-asked cassette request)))
    (if (not head)
        (llm-ert--cassette-fails
         cassette (format "%s did not answer %s" (llm-ert--cassette-to cassette)
                          (plist-get request :path)))
      (unless (llm-ert--streamed-p request (cdr head))
        (setq pieces (list (apply #'concat pieces))))
      (push (llm-ert--make-entry
             :asked asked
             :status (string-to-number (nth 1 (split-string (car head))))
             :headers (llm-ert--kept (cdr head) llm-ert--kept-answer-headers)
             :pieces (llm-ert--edited
                      pieces
                      (llm-ert--edits cassette (apply #'concat pieces)
                                      (llm-ert--secrets (plist-get request :headers)))))
            (llm-ert--cassette-entries cassette)))))

(defun llm-ert--streamed-p (request headers)
  "Return non-nil if the answer to REQUEST, with HEADERS, is streamed."
  (or (not (string-match-p "application/json" (or (llm-ert--header headers "content-type") "")))
      (string-match-p ":stream" (plist-get request :path))
      (string-match-p "\"stream\" *: *true" (plist-get request :body))))

;;;; JSON-RPC

(defun llm-ert--rpc-asked (cassette json)
  "Return JSON, a message of the client, as text that CASSETTE compares."
  (let ((data (llm-ert--object (decode-coding-string (llm-ert--clean cassette json) 'utf-8))))
    (remhash "jsonrpc" data)
    (when (gethash "method" data) (remhash "id" data))
    (llm-ert--pretty (encode-coding-string (json-encode data) 'utf-8))))

(defun llm-ert--rpc-entry (cassette json sent line)
  "Return the entry of CASSETTE in LINE for JSON; SENT says that the client did."
  (let ((message (llm-ert--read-json json)))
    (llm-ert--make-entry :line line :text json
                         :asked (and sent (llm-ert--rpc-asked cassette json))
                         :id (plist-get message :id) :method (plist-get message :method))))

(defun llm-ert--rpc-entry-text (entry)
  "Return ENTRY as text of a cassette."
  (concat (if (llm-ert--entry-asked entry) "> " "< ")
          (decode-coding-string (llm-ert--entry-text entry) 'utf-8)
          "\n"))

(defun llm-ert--read-rpc-entry ()
  "Return the entry of JSON-RPC at point, and go behind it."
  (prog1 (llm-ert--rpc-entry
          (llm-ert--make-cassette)
          (encode-coding-string
           (llm-ert--at-home (buffer-substring (+ 2 (point)) (line-end-position))) 'utf-8)
          (eq (char-after) ?>) (line-number-at-pos))
    (forward-line)))

(defun llm-ert--at-home (text)
  "Return TEXT of a cassette with the test's folder for what stands for it."
  (if llm-ert-directory
      (replace-regexp-in-string
       (concat (regexp-quote (directory-file-name llm-ert--placeholder))
               "\\(/\\|\\'\\|[^[:alnum:]._-]\\)")
       (lambda (match)
         (concat (directory-file-name llm-ert-directory) (substring match -1)))
       text t t)
    text))

(defun llm-ert--rpc-record (cassette client chunk)
  "Pass CHUNK of CLIENT on to the real server of CASSETTE, and record it."
  (unless (process-get client 'real)
    (process-put client 'real (llm-ert--rpc-start cassette client)))
  (llm-ert--rpc-recorded cassette client chunk t)
  (process-send-string (process-get client 'real) chunk))

(defun llm-ert--rpc-start (cassette client)
  "Return the real server of CASSETTE for CLIENT, which is started."
  (let ((filter (lambda (process chunk)
                  (llm-ert--rpc-recorded cassette process chunk nil)
                  (llm-ert--send client chunk)))
        (sentinel (lambda (process _)
                    (unless (process-live-p process)
                      (when (process-live-p client) (process-send-eof client))))))
    (if-let* ((command (llm-ert--cassette-command cassette)))
        (make-process :name "llm-ert-real" :command command :connection-type 'pipe
                      :coding 'binary :noquery t :filter filter :sentinel sentinel
                      :stderr (get-buffer-create "*llm-ert real server*"))
      (pcase-let ((`(,host ,port) (llm-ert--cassette-to cassette)))
        (make-network-process :name "llm-ert-real" :host host :service port
                              :coding 'binary :noquery t
                              :filter filter :sentinel sentinel)))))

(defun llm-ert--rpc-recorded (cassette process chunk sent)
  "Add the messages that CHUNK of PROCESS completes to CASSETTE.
SENT says that the client sent them."
  (llm-ert--each-message
   (llm-ert--cassette-framing cassette) process chunk
   (lambda (json)
     (let ((clean (llm-ert--clean cassette json (llm-ert--secrets))))
       (llm-ert--note (if sent 'sent 'received) (llm-ert--read-json clean))
       (push (llm-ert--rpc-entry cassette clean sent nil)
             (llm-ert--cassette-entries cassette))))))

(defun llm-ert--rpc-play (cassette client chunk)
  "Answer from CASSETTE the messages that CHUNK of CLIENT completes."
  (llm-ert--each-message
   (llm-ert--cassette-framing cassette) client chunk
   (lambda (json)
     (llm-ert--note 'sent (llm-ert--read-json json))
     (let* ((asked (llm-ert--rpc-asked cassette json))
            (message (llm-ert--read-json json))
            (to-come (cl-remove-if-not (lambda (entry)
                                         (and (llm-ert--entry-asked entry)
                                              (not (llm-ert--entry-played entry))))
                                       (llm-ert--cassette-entries cassette)))
            (entry (cl-find (llm-ert--comparable asked) to-come :test #'equal
                            :key (lambda (it)
                                   (llm-ert--comparable (llm-ert--entry-asked it))))))
       (if entry
           (progn
             (setf (llm-ert--entry-played entry) (or (plist-get message :id) t))
             (llm-ert--rpc-release cassette client))
         (let ((problem (llm-ert--unlike
                         cassette asked
                         (or (cl-find (plist-get message :method) to-come
                                      :test #'equal :key #'llm-ert--entry-method)
                             (car to-come)))))
           (when (and (plist-get message :id) (plist-get message :method))
             (llm-ert--rpc-say cassette client
                               (encode-coding-string
                                (json-encode (list :jsonrpc "2.0" :id (plist-get message :id)
                                                   :error (list :code -32603
                                                                :message problem)))
                                'utf-8)))))))))

(defun llm-ert--rpc-say (cassette client json)
  "Send JSON to CLIENT of CASSETTE."
  (llm-ert--note 'received (llm-ert--read-json json))
  (llm-ert--send client (llm-ert--framed (llm-ert--cassette-framing cassette) 2 json)))

(defun llm-ert--rpc-release (cassette client)
  "Send CLIENT what CASSETTE has next, in order.
Send an answer once the client has made its call.  Send anything else
once the client has sent all that it sent before it in the recording."
  (let ((blocked nil) calls)
    (dolist (entry (llm-ert--cassette-entries cassette))
      (let ((id (llm-ert--entry-id entry)))
        (cond ((llm-ert--entry-asked entry)
               (if (llm-ert--entry-played entry)
                   (when (llm-ert--entry-method entry) (push entry calls))
                 (setq blocked t)))
              ((llm-ert--entry-played entry))
              ((llm-ert--entry-method entry)
               (unless blocked
                 (setf (llm-ert--entry-played entry) t)
                 (llm-ert--rpc-say cassette client (llm-ert--entry-text entry))))
              (t (when-let* ((call (cl-find id calls :test #'equal
                                            :key #'llm-ert--entry-id)))
                   (setf (llm-ert--entry-played entry) t)
                   (let ((data (llm-ert--object
                                (decode-coding-string (llm-ert--entry-text entry) 'utf-8))))
                     (puthash "id" (llm-ert--entry-played call) data)
                     (llm-ert--rpc-say cassette client
                                       (encode-coding-string (json-encode data)
                                                             'utf-8))))))))))

(provide 'llm-ert-cassette)
;;; llm-ert-cassette.el ends here
